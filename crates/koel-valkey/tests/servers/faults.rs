//! A cluster of three primaries and three replicas, in which nodes are killed, paused and failed
//! over and slots move, while clients add, delete and merge.
//!
//! **What must hold.** A server replicates in order, so what survives is all up to some moment. It
//! does not promise that an acknowledged write survives a failover that was not planned, not even
//! after `WAIT 1`. So each command is followed by a plain key, its *mark*. Where the mark survived,
//! so has the command: its items are in, unless a deletion was sent, and items that were in the
//! source of a MERGE are in its destination. In the end each primary and its replica are equal.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use redis::{Client, Connection, Value, cmd};
use testkit::threads::SetOnDrop;

use crate::cluster::{id, info_has, is_primary, join, start_nodes};
use crate::server::{Server, await_equal, await_replica, number, numbers, ok, run, until};
use crate::values::total;

/// Filters, each with a client of its own: a third per primary.
const FILTERS: usize = 6;
/// From 128 KiB on, filters are merged on a thread.
const CAPACITY: usize = 200_000;
const BATCH: usize = 50;

/// A client of one filter, and what it knows.
struct Worker {
    ports: Vec<u16>,
    connection: Option<(Connection, u16)>,
    by: u16,
    /// The tag of its keys, which puts them into one slot.
    tag: usize,
    next: usize,
    /// Items that are in `set`, with their batches.
    held: BTreeMap<String, usize>,
    /// Items that are in `union`, with their batches and the first MERGE.
    merged: BTreeMap<String, (usize, usize)>,
    /// Marks are numbered.
    marks: usize,
    acknowledged: usize,
    begun: Instant,
    /// When each batch was acknowledged, and by which node.
    log: BTreeMap<usize, (Duration, String)>,
}

impl Worker {
    fn new(nodes: &[Server], tag: usize) -> Self {
        Self {
            ports: nodes.iter().map(Server::port).collect(),
            connection: None,
            by: 0,
            tag,
            next: 0,
            held: BTreeMap::new(),
            merged: BTreeMap::new(),
            marks: 0,
            acknowledged: 0,
            begun: Instant::now(),
            log: BTreeMap::new(),
        }
    }

    fn key(&self, name: &str) -> String {
        format!("{{{}}}{name}", self.tag)
    }

    /// A plain key that is written after a command.
    fn mark(&self, number: usize) -> String {
        format!("{}.{number}", self.key("mark"))
    }

    /// Sends a command to the node that has the slot. The reply, if a replica has it too.
    fn acknowledged(&mut self, line: &str) -> Option<Value> {
        let (mut connection, port) = self.connection.take().or_else(|| self.find())?;
        self.by = port;
        let reply = run(&mut connection, line).ok()?;
        self.marks += 1;
        run(&mut connection, &format!("SET {} 1", self.mark(self.marks))).ok()?;
        let copies = run(&mut connection, "WAIT 1 2000").ok()?;
        self.connection = Some((connection, port));
        if number(&copies) < 1 {
            return None;
        }
        self.acknowledged += 1;
        Some(reply)
    }

    /// A connection to the node that has the slot.
    fn find(&self) -> Option<(Connection, u16)> {
        let key = self.key("set");
        self.ports.iter().find_map(|port| {
            let client = Client::open(format!("redis://127.0.0.1:{port}/")).ok()?;
            let wait = Duration::from_millis(1500);
            let mut connection = client.get_connection_with_timeout(wait).ok()?;
            connection.set_read_timeout(Some(Duration::from_secs(8))).ok()?;
            // Writes nothing, and a replica refuses it.
            cmd("PERSIST").arg(&key).query::<Value>(&mut connection).ok()?;
            Some((connection, *port))
        })
    }

    fn add(&mut self) {
        let items: Vec<String> = (0..BATCH).map(|at| format!("i{}", self.next + at)).collect();
        self.next += BATCH;
        let line = format!("CF.INSERT {} NOCREATE ITEMS {}", self.key("set"), items.join(" "));
        let sent = self.begun.elapsed();
        if let Some(reply) = self.acknowledged(&line) {
            let by = format!("{:?}; sent at {sent:?}", self.by);
            assert!(numbers(&reply).iter().all(|&added| added == 1), "{reply:?}");
            self.log.insert(self.marks, (self.begun.elapsed(), by));
            self.held.extend(items.into_iter().map(|item| (item, self.marks)));
        }
    }

    /// What was sent to be deleted may be in or not, whatever the answer is.
    fn delete(&mut self) {
        let items: Vec<String> = self.held.keys().take(BATCH / 5).cloned().collect();
        self.held.retain(|item, _| !items.contains(item));
        if !items.is_empty() {
            self.acknowledged(&format!("CF.MDEL {} {}", self.key("set"), items.join(" ")));
        }
    }

    fn merge(&mut self) {
        let (union, set) = (self.key("union"), self.key("set"));
        if self.acknowledged(&format!("CF.MERGE {union} {set}")).is_some() {
            for (item, &batch) in &self.held {
                self.merged.entry(item.clone()).or_insert((batch, self.marks));
            }
        }
    }

    fn work(&mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            (0..6).for_each(|_| self.add());
            self.delete();
            self.merge();
            if self.connection.is_none() {
                sleep(Duration::from_millis(50));
            }
        }
    }

    /// Asserts that all is there whose marks are.
    fn check(&self) {
        let mut connection = until("an owner", || self.find()).0;
        let mut survived = |mark| {
            let mark = format!("EXISTS {}", self.mark(mark));
            number(&ok(&mut connection, &mark)) == 1
        };
        let marks: BTreeSet<usize> = (1..=self.marks).filter(|&mark| survived(mark)).collect();
        for lost in self.log.iter().filter(|(mark, _)| !marks.contains(mark)) {
            println!("the server has lost a batch of {}: {lost:?}", self.tag);
        }
        let held = self.held.iter().filter(|(_, batch)| marks.contains(batch));
        let merged = self.merged.iter();
        let merged = merged.filter(|(_, (batch, it))| marks.contains(batch) && marks.contains(it));
        let held: Vec<&str> = held.map(|(item, _)| item.as_str()).collect();
        let merged: Vec<&str> = merged.map(|(item, _)| item.as_str()).collect();
        assert!(held.len() > 1000 && !merged.is_empty());
        for (name, items) in [("set", held), ("union", merged)] {
            for batch in items.chunks(1000) {
                let line = format!("CF.MEXISTS {} {}", self.key(name), batch.join(" "));
                let found = numbers(&ok(&mut connection, &line));
                let missing = batch.iter().zip(&found).filter(|(_, found)| **found == 0);
                let missing: Vec<_> = missing.map(|(item, _)| item).collect();
                assert!(missing.is_empty(), "{missing:?} are not in {name} of {}", self.tag);
            }
        }
    }
}

/// Each primary has a replica that follows it. Returns the primaries with their replicas.
pub(crate) fn await_pairs(nodes: &[Server]) -> Vec<(usize, usize)> {
    until("three pairs", || {
        let primaries: Vec<usize> = (0..nodes.len()).filter(|&at| is_primary(&nodes[at])).collect();
        let follows = |replica: usize, primary: usize| {
            let line = format!("master_port:{}\r", nodes[primary].port());
            let is_up = "master_link_status:up\r";
            let has = |line: &str| info_has(&nodes[replica], "INFO replication", line).is_some();
            has(&line) && has(is_up)
        };
        let pair = |&primary: &usize| {
            let replica = (0..nodes.len()).find(|&replica| follows(replica, primary))?;
            Some((primary, replica))
        };
        let pairs: Vec<_> = primaries.iter().filter_map(pair).collect();
        let is_well = |node| info_has(node, "CLUSTER INFO", "cluster_state:ok").is_some();
        (primaries.len() == 3 && pairs.len() == 3 && nodes.iter().all(is_well)).then_some(pairs)
    })
}

fn await_primary(node: &Server) {
    until("a failover", || is_primary(node).then_some(()));
}

/// Makes a replica the primary. A server gives a planned failover up after five seconds, such as
/// where the machine is busy, and wants to be asked again.
pub(crate) fn fail_over(replica: &Server, how: &str) {
    until("a failover", || {
        let begun = Instant::now();
        drop(run(&mut replica.connect("resp2"), &format!("CLUSTER FAILOVER {how}")));
        while !is_primary(replica) && begun.elapsed() < Duration::from_secs(7) {
            sleep(Duration::from_millis(25));
        }
        is_primary(replica).then_some(())
    });
}

/// Moves the slot of a key in one step, and waits until the replica of the target has it.
fn move_slot(nodes: &[Server], pairs: &[(usize, usize)], key: &str) {
    let slot = number(&ok(&mut nodes[0].connect("resp2"), &format!("CLUSTER KEYSLOT {key}")));
    let has = |node: &Server| run(&mut node.connect("resp2"), &format!("PERSIST {key}")).is_ok();
    let from = until("an owner", || pairs.iter().position(|&(primary, _)| has(&nodes[primary])));
    let (from, to) = (&nodes[pairs[from].0], &nodes[pairs[(from + 1) % 3].0]);
    let mut source = from.connect("resp2");
    let line = format!("CLUSTER MIGRATESLOTS SLOTSRANGE {slot} {slot} NODE {}", id(to));
    ok(&mut source, &line);
    until("a move", || has(to).then_some(()));
    let mut target = to.connect("resp2");
    ok(&mut target, &format!("SET {key}.mark 1"));
    await_replica(&mut target);
}

fn disturb(nodes: &mut Vec<Server>) {
    let begun = Instant::now();
    for round in 0..3 {
        let (primary, replica) = await_pairs(nodes)[round];
        println!("{:?}: round {round}: killed", begun.elapsed());
        println!("{primary} {replica} {:?}", nodes.iter().map(Server::port).collect::<Vec<_>>());
        nodes[primary].kill();
        await_primary(&nodes[replica]);
        let killed = nodes.remove(primary);
        nodes.insert(primary, killed.again());

        let pairs = await_pairs(nodes);
        println!("{:?}: round {round}: slots move", begun.elapsed());
        for tag in [round, round + 3] {
            move_slot(nodes, &pairs, &format!("{{{tag}}}set"));
        }

        let (primary, replica) = await_pairs(nodes)[(round + 1) % 3];
        println!("{:?}: round {round}: hangs", begun.elapsed());
        nodes[primary].stop();
        await_primary(&nodes[replica]);
        nodes[primary].go_on();

        for how in ["", "FORCE"] {
            let (primary, replica) = await_pairs(nodes)[(round + 2) % 3];
            println!("{:?}: round {round}: failed over {how}", begun.elapsed());
            ok(&mut nodes[primary].connect("resp2"), "CLIENT PAUSE 300 WRITE");
            sleep(Duration::from_millis(100));
            fail_over(&nodes[replica], how);
        }
    }
}

/// Lets clients add, delete and merge, while something becomes of the cluster. Asserts that what
/// was acknowledged is there in the end, and that each replica is equal to its primary.
pub(crate) fn while_clients_work(nodes: &mut Vec<Server>, happens: impl FnOnce(&mut Vec<Server>)) {
    join(nodes);
    let mut workers: Vec<_> = (0..FILTERS).map(|tag| Worker::new(nodes, tag)).collect();
    for worker in &mut workers {
        let line = format!("CF.RESERVE {} {CAPACITY}", worker.key("set"));
        until("a reservation", || worker.acknowledged(&line));
    }
    let stop = AtomicBool::new(false);
    scope(|scope| {
        for worker in &mut workers {
            scope.spawn(|| worker.work(&stop));
        }
        // Also if something panics: otherwise the clients would go on for ever.
        let _stop = SetOnDrop(&stop);
        happens(nodes);
    });
    let pairs = await_pairs(nodes);
    for worker in &workers {
        println!("{} acknowledged, {} held", worker.acknowledged, worker.held.len());
        worker.check();
    }
    for (primary, replica) in pairs {
        await_equal(&nodes[primary], &nodes[replica]);
        let mut primary = nodes[primary].connect("resp2");
        assert_eq!(total(&mut primary, "panics"), 0);
    }
}

#[test]
#[ignore = "needs servers: scripts/valkey"]
fn a_cluster_keeps_what_its_servers_keep_while_nodes_fail_and_slots_move() {
    while_clients_work(&mut start_nodes(), disturb);
}
