//! A set in a cluster, spread over filters so that all nodes share its items.
//!
//! **Scheme.** Item `x` belongs to the filter `NAME:{n}`, where `n` is the 64-bit FNV-1a hash of
//! its bytes modulo the number of filters. The braces make the cluster place a filter by `n` alone.
//! Another language only needs FNV-1a. The filter hashes items in its own way, so the two hashes do
//! not disturb each other.
//!
//! **Number of filters.** Several times the number of primaries, so that their shares are even and
//! slots can move to new nodes. It cannot change: another number needs another set.
//!
//! **Acknowledged.** `add` returns when the primary has the items and `replicas` of its replicas
//! have received them (`WAIT`). Then they survive the death of the primary. After an error, some
//! of the items may be in. They can be added again: `CF.INSERTNX` adds an item once.

use std::collections::BTreeMap;

use redis::cluster::ClusterConnection;
use redis::cluster_routing::{Route, RoutingInfo, SingleNodeRoutingInfo, SlotAddr};
use redis::{ErrorKind, RedisError, RedisResult, cmd, from_redis_value};

/// A set in a cluster.
#[derive(Clone, Debug)]
pub(crate) struct ShardedSet {
    /// What its keys begin with.
    pub(crate) name: &'static str,
    /// The number of filters.
    pub(crate) filters: u64,
    /// How many replicas confirm that they have what was added.
    pub(crate) replicas: u32,
    /// Milliseconds until they must have confirmed.
    pub(crate) patience: u32,
}

impl ShardedSet {
    /// The number of the filter of an item.
    pub(crate) fn filter_of(&self, item: &str) -> u64 {
        let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        item.bytes().fold(0xcbf2_9ce4_8422_2325, step) % self.filters
    }

    /// The key of a filter.
    pub(crate) fn key(&self, filter: u64) -> String {
        format!("{}:{{{filter}}}", self.name)
    }

    /// Makes the filters, with room for `capacity` items in all.
    pub(crate) fn reserve(
        &self,
        connection: &mut ClusterConnection,
        capacity: u64,
        error: f64,
    ) -> RedisResult<()> {
        // Shares differ by chance: by less than four standard deviations.
        let share = capacity / self.filters;
        let capacity = share + 4 * share.isqrt() + 4;
        (0..self.filters).try_for_each(|filter| {
            let mut command = cmd("CF.RESERVE");
            command.arg(self.key(filter)).arg(capacity).arg("ERROR").arg(error);
            command.exec(connection)
        })
    }

    /// Adds items. Returns how many were new.
    pub(crate) fn add(
        &self,
        connection: &mut ClusterConnection,
        items: &[String],
    ) -> RedisResult<usize> {
        let mut new = 0;
        for (filter, items) in self.by_filter(items) {
            let key = self.key(filter);
            let mut command = cmd("CF.INSERTNX");
            command.arg(&key).arg("NOCREATE").arg("ITEMS").arg(&items);
            // 1: added, 0: was in, -1: no room.
            let added: Vec<i64> = command.query(connection)?;
            if added.contains(&-1) {
                return Err(RedisError::from((ErrorKind::Client, "a filter is full")));
            }
            new += added.iter().filter(|&&added| added == 1).count();
            self.confirm(connection, &key)?;
        }
        Ok(new)
    }

    /// Waits until replicas have what this connection has written to the primary of a key.
    fn confirm(&self, connection: &mut ClusterConnection, key: &str) -> RedisResult<()> {
        if self.replicas == 0 {
            return Ok(());
        }
        let primary = SingleNodeRoutingInfo::SpecificNode(Route::with_key(key, SlotAddr::Master));
        let wait = cmd("WAIT").arg(self.replicas).arg(self.patience).take();
        let confirmed = connection.route_command(&wait, RoutingInfo::SingleNode(primary))?;
        if from_redis_value::<u32>(confirmed)? < self.replicas {
            return Err(RedisError::from((ErrorKind::Client, "too few replicas confirmed")));
        }
        Ok(())
    }

    /// Whether each of the items is in.
    pub(crate) fn contains(
        &self,
        connection: &mut ClusterConnection,
        items: &[String],
    ) -> RedisResult<Vec<bool>> {
        let mut found = BTreeMap::new();
        for (filter, items) in self.by_filter(items) {
            let answers: Vec<bool> =
                cmd("CF.MEXISTS").arg(self.key(filter)).arg(&items).query(connection)?;
            found.extend(items.into_iter().zip(answers));
        }
        Ok(items.iter().map(|item| found[item]).collect())
    }

    fn by_filter<'a>(&self, items: &'a [String]) -> BTreeMap<u64, Vec<&'a String>> {
        let mut groups = BTreeMap::<_, Vec<_>>::new();
        for item in items {
            groups.entry(self.filter_of(item)).or_default().push(item);
        }
        groups
    }
}
