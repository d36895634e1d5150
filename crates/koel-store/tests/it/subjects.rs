//! Both stores as subjects of the trials.

use std::io;
use std::sync::Arc;

use koel_store::files::Folder;
use koel_store::{Batch, Durability, Error, LogStore, LsmOptions, LsmStore, Options, TornEnd};
use testkit::storage::{History, Op, OrderedOp, OrderedProgram, Program, State, Write};

use crate::lsm::trial::{self as ordered_trial, OrderedTrial, collect};
use crate::subject::{Programmed, Subject};
use crate::trial::{self, Trial, iterate};

impl Subject for LogStore {
    type Options = Options;
    const PREFIX: &str = "";

    fn open_in(options: &Options, folder: Arc<dyn Folder>) -> Result<Self, Error> {
        options.clone().open_in(folder)
    }

    fn write(&self, batch: &Batch, durability: Durability) -> Result<(), Error> {
        Self::write(self, batch, durability)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Self::get(self, key)
    }

    fn contents(&self) -> Result<State, Error> {
        iterate(self)
    }

    fn torn(&self) -> Option<TornEnd> {
        self.open_report().torn.clone()
    }

    fn has_removed(&self) -> bool {
        !self.open_report().removed.is_empty()
    }

    fn close(self) -> Result<(), Error> {
        Self::close(self)
    }
}

impl Programmed for LogStore {
    type Op = Op;
    type Program = Program;
    type Trial = Trial;

    fn small(seed: u64) -> Options {
        trial::small(seed)
    }

    fn program(seed: u64, keys: usize, longest: usize) -> Program {
        Program::new(seed, keys, longest)
    }

    fn keys(program: &Program) -> &[Vec<u8>] {
        program.keys()
    }

    fn op(op: Op) -> Op {
        op
    }

    fn changes(op: &Op) -> Write {
        if let Op::Write { changes, .. } = op { changes.clone() } else { Vec::new() }
    }

    fn start(
        folder: Arc<dyn Folder>,
        options: &Options,
        program: &Program,
        history: History,
    ) -> Result<Trial, Error> {
        Trial::open(folder, options, program, history)
    }

    fn step(trial: &mut Trial, op: Op) -> Result<(), Error> {
        trial.step(op)
    }

    fn history(trial: &Trial) -> &History {
        &trial.history
    }

    fn in_doubt(trial: &Trial) -> bool {
        trial.in_doubt
    }

    fn take(mut trial: Trial) -> Self {
        trial.store.take().expect("an open store")
    }

    fn read_only(options: &Options) -> Options {
        options.clone().background_compaction(true).read_only(true)
    }

    fn change(&self) -> Vec<Result<(), Error>> {
        let mut batch = Batch::new();
        batch.put(b"", b"").unwrap();
        vec![
            self.put(b"key", b"value", Durability::Synced),
            self.put_reader(b"key", 1 << 20, io::repeat(0), Durability::None),
            self.delete(b"key", Durability::None).map(drop),
            self.write(&batch, Durability::None),
            self.compact().map(drop),
        ]
    }

    fn check_sound(&self) {
        self.sync().unwrap();
        assert_eq!(self.verify(|_, _| ()).unwrap().damages, []);
    }
}

impl Subject for LsmStore {
    type Options = LsmOptions;
    const PREFIX: &str = "ordered ";

    fn open_in(options: &LsmOptions, folder: Arc<dyn Folder>) -> Result<Self, Error> {
        options.clone().open_in(folder)
    }

    fn write(&self, batch: &Batch, durability: Durability) -> Result<(), Error> {
        Self::write(self, batch, durability)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Self::get(self, key)
    }

    fn contents(&self) -> Result<State, Error> {
        collect(self.iter()?)
    }

    fn torn(&self) -> Option<TornEnd> {
        self.open_report().torn.clone()
    }

    fn has_removed(&self) -> bool {
        !self.open_report().removed.is_empty()
    }

    fn close(self) -> Result<(), Error> {
        Self::close(self)
    }
}

impl Programmed for LsmStore {
    type Op = OrderedOp;
    type Program = OrderedProgram;
    type Trial = OrderedTrial;

    fn small(seed: u64) -> LsmOptions {
        ordered_trial::small(seed)
    }

    fn program(seed: u64, keys: usize, longest: usize) -> OrderedProgram {
        OrderedProgram::new(seed, keys, longest)
    }

    fn keys(program: &OrderedProgram) -> &[Vec<u8>] {
        program.keys()
    }

    fn op(op: Op) -> OrderedOp {
        OrderedOp::Common(op)
    }

    fn changes(op: &OrderedOp) -> Write {
        match op {
            OrderedOp::Common(Op::Write { changes, .. }) => changes.clone(),
            OrderedOp::Ingest(entries) => {
                entries.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect()
            }
            _ => Vec::new(),
        }
    }

    fn start(
        folder: Arc<dyn Folder>,
        options: &LsmOptions,
        program: &OrderedProgram,
        history: History,
    ) -> Result<OrderedTrial, Error> {
        OrderedTrial::open(folder, options, program, history)
    }

    fn step(trial: &mut OrderedTrial, op: OrderedOp) -> Result<(), Error> {
        trial.step(op)
    }

    fn history(trial: &OrderedTrial) -> &History {
        &trial.history
    }

    fn in_doubt(trial: &OrderedTrial) -> bool {
        trial.in_doubt
    }

    fn take(mut trial: OrderedTrial) -> Self {
        trial.store.take().expect("an open store")
    }

    fn read_only(options: &LsmOptions) -> LsmOptions {
        options.clone().background(true).read_only(true)
    }

    fn change(&self) -> Vec<Result<(), Error>> {
        vec![
            self.put(b"key", b"value", Durability::Synced),
            self.delete(b"key", Durability::None),
            self.ingest([(b"key", b"value")]).map(drop),
            self.flush(),
            self.compact(),
        ]
    }

    fn check_sound(&self) {
        self.sync().unwrap();
        assert_eq!(self.verify(|_, _| ()).unwrap().damages, []);
    }
}
