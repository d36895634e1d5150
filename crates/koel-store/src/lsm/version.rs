//! A version: the runs of the tree, youngest first, and the guide to them.
//!
//! A version never changes. A flush, an ingestion or a merge makes the next one. A run is one
//! table. The sequence numbers of a run are greater than those of all older ones.

use std::sync::Arc;

use super::guide::{Guide, GuideOptions, Ids};
use super::table::Table;
use crate::Error;

/// A table in the tree.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) table: Arc<Table>,
    /// Names the run in the guide. Without a guide it means nothing.
    pub(super) id: u8,
}

/// The runs of one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Version {
    /// Youngest first.
    pub(super) runs: Vec<Arc<Run>>,
    /// Without one, a read asks every run.
    pub(super) guide: Option<Arc<Guide>>,
}

impl Run {
    pub(super) fn number(&self) -> u64 {
        self.table.info().number
    }

    /// Returns the bit of its id.
    #[inline]
    pub(super) fn mask(&self) -> Ids {
        1 << (u32::from(self.id) % Ids::BITS)
    }
}

impl Version {
    /// Returns the runs with their ids.
    pub(super) fn identified(&self) -> Vec<(u8, &Table)> {
        self.runs.iter().map(|run| (run.id, &*run.table)).collect()
    }

    /// Returns an id that no run has, if the guide can have another run.
    pub(super) fn free_id(&self, options: &GuideOptions) -> Option<u8> {
        let used = self.runs.iter().fold(0, |ids: Ids, run| ids | run.mask());
        let free = (!used).trailing_zeros();
        u8::try_from(free).ok().filter(|_| free < options.most_runs())
    }

    /// Returns this version with new ids for all runs and a guide to them; without a guide if there
    /// are too many runs, or if one of them is unreadable.
    pub(super) fn with_new_guide(&self, options: &GuideOptions) -> Result<Self, Error> {
        let fits = self.runs.len() as u64 <= u64::from(options.most_runs());
        let renamed = self.runs.iter().zip(0..).map(|(run, id)| Run { id, ..(**run).clone() });
        let mut version = Self { runs: renamed.map(Arc::new).collect(), guide: None };
        if fits {
            let guide = Guide::build(&version.identified(), *options)?;
            version.guide = Some(Arc::new(guide));
        }
        Ok(version)
    }

    /// Returns this version with a run in front.
    pub(super) fn with_run(&self, table: Arc<Table>, options: &GuideOptions) -> Self {
        let id = self.free_id(options);
        let run = Arc::new(Run { table, id: id.unwrap_or(0) });
        let mut version = Self { runs: self.runs.clone(), guide: None };
        version.runs.insert(0, run.clone());
        if let (Some(id), Some(guide)) = (id, &self.guide) {
            // A guide is never needed: what goes wrong with it costs only time.
            let next = guide.with_run((id, &*run.table), &version.identified());
            version.guide = next.ok().map(Arc::new);
        }
        version
    }

    /// Returns this version with `output` in place of the runs `inputs`, which are adjacent.
    /// `surplus` is what [`Guide::with_merge`] needs.
    pub(super) fn with_merge(
        &self,
        inputs: &[Arc<Run>],
        output: Option<Arc<Table>>,
        surplus: Option<&[u64]>,
    ) -> Self {
        let is_input = |run: &Arc<Run>| inputs.iter().any(|input| input.number() == run.number());
        let at = self.runs.iter().position(is_input).unwrap_or(self.runs.len());
        let mut version = Self { runs: self.runs.clone(), guide: None };
        // Ids may have changed since the merge began.
        let ids = version.runs.iter().filter(|run| is_input(run));
        let ids = ids.fold(0, |ids: Ids, run| ids | run.mask());
        version.runs.retain(|run| !is_input(run));
        let id = u8::try_from(ids.trailing_zeros()).unwrap_or(0);
        let has_output = output.is_some();
        if let Some(table) = output {
            version.runs.insert(at, Arc::new(Run { table, id }));
        }
        if let Some(guide) = &self.guide {
            let output = has_output.then_some(id);
            let next = guide.with_merge(ids, output, surplus, &version.identified());
            version.guide = next.ok().map(Arc::new);
        }
        version
    }
}
