//! A set that is spread over a cluster: three primaries and three replicas on loopback.
//!
//! The scheme: item `x` belongs to the filter `seen:{n}`, where `n` is a hash of `x` modulo the
//! number of filters. There are more filters than primaries, so that they can be moved. Any hash
//! will do: filters hash items in their own way. Here it is FNV-1a.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use redis::cluster::{ClusterClient, ClusterConnection};
use redis::{Value, cmd};

use crate::server::{Server, bytes, module, number, numbers, ok, programs};

const SHARDS: u64 = 12;
const ITEMS: usize = 100_000;
const BATCH: usize = 500;
const NODES: usize = 6;

fn shard(item: &str) -> u64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    item.bytes().fold(0xcbf2_9ce4_8422_2325, step) % SHARDS
}

fn key(shard: u64) -> String {
    format!("seen:{{{shard}}}")
}

/// Tries until it succeeds, for a minute.
fn until<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    for _ in 0..600 {
        if let Some(done) = attempt() {
            return done;
        }
        sleep(Duration::from_millis(100));
    }
    panic!("{what} takes more than a minute")
}

/// Items of each shard, in batches.
fn batches(range: std::ops::Range<usize>) -> Vec<(u64, Vec<String>)> {
    let mut shards: Vec<(u64, Vec<String>)> = (0..SHARDS).map(|n| (n, Vec::new())).collect();
    for item in range.map(|number| format!("item{number}")) {
        shards[usize::try_from(shard(&item)).unwrap()].1.push(item);
    }
    let cut = |(shard, items): (u64, Vec<String>)| {
        items.chunks(BATCH).map(|some| (shard, some.to_vec())).collect::<Vec<_>>()
    };
    shards.into_iter().flat_map(cut).collect()
}

/// Runs a command on the items of a shard. `None` where the cluster has no answer now.
fn try_on(
    connection: &mut ClusterConnection,
    command: &[&str],
    batch: &(u64, Vec<String>),
) -> Option<Vec<i64>> {
    let mut request = cmd(command[0]);
    request.arg(key(batch.0)).arg(&command[1..]).arg(&batch.1);
    request.query::<Value>(connection).ok().map(|reply| numbers(&reply))
}

fn start_nodes() -> Vec<Server> {
    let program = programs().pop().unwrap();
    let arguments = ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"];
    let start = || Server::start_with(&program, &[module("")], &arguments);
    std::iter::repeat_with(start).take(NODES).collect()
}

fn info_has(node: &Server, line: &str) -> Option<()> {
    let info = match ok(&mut node.connect("resp2"), "CLUSTER INFO") {
        Value::VerbatimString { text, .. } => text,
        other => String::from_utf8(bytes(other)).unwrap(),
    };
    info.contains(line).then_some(())
}

fn id(node: &Server) -> String {
    String::from_utf8(bytes(ok(&mut node.connect("resp2"), "CLUSTER MYID"))).unwrap()
}

/// Joins three primaries, each with a third of the slots, and their replicas.
fn join(nodes: &[Server]) {
    for (index, node) in nodes.iter().enumerate() {
        let mut connection = node.connect("resp2");
        ok(&mut connection, &format!("CLUSTER MEET 127.0.0.1 {}", nodes[0].port()));
        if index < 3 {
            let (first, last) = (index * 16_384 / 3, (index + 1) * 16_384 / 3 - 1);
            ok(&mut connection, &format!("CLUSTER ADDSLOTSRANGE {first} {last}"));
        }
    }
    for node in nodes {
        until("joining", || info_has(node, &format!("cluster_known_nodes:{NODES}\r")));
    }
    for (replica, primary) in nodes[3..].iter().zip(nodes) {
        let line = format!("CLUSTER REPLICATE {}", id(primary));
        until("a replica", || crate::server::run(&mut replica.connect("resp2"), &line).ok());
    }
    for node in nodes {
        until("agreeing", || info_has(node, "cluster_state:ok"));
    }
}

/// Waits until all that a primary has written is in its replica.
fn replicated(primary: &Server) {
    let mut connection = primary.connect("resp2");
    let owned = (0..SHARDS)
        .map(key)
        .find(|key| crate::server::run(&mut connection, &format!("CF.ADD {key} last")).is_ok());
    assert!(owned.is_some(), "a primary without filters");
    assert_eq!(number(&ok(&mut connection, "WAIT 1 30000")), 1);
}

/// Moves a slot from one primary to another, as `valkey-cli --cluster reshard` does.
fn migrate(key: &str, from: &Server, to: &Server) {
    let (mut source, mut target) = (from.connect("resp2"), to.connect("resp2"));
    let slot = number(&ok(&mut source, &format!("CLUSTER KEYSLOT {key}")));
    ok(&mut target, &format!("CLUSTER SETSLOT {slot} IMPORTING {}", id(from)));
    ok(&mut source, &format!("CLUSTER SETSLOT {slot} MIGRATING {}", id(to)));
    ok(&mut source, &format!("MIGRATE 127.0.0.1 {} {key} 0 30000", to.port()));
    for connection in [&mut target, &mut source] {
        ok(connection, &format!("CLUSTER SETSLOT {slot} NODE {}", id(to)));
    }
}

/// Which of the nodes has the slot of a key.
fn owner<'a>(nodes: &'a [Server], key: &str) -> &'a Server {
    let answers = |node: &&Server| {
        crate::server::run(&mut node.connect("resp2"), &format!("CF.ADD {key} probe")).is_ok()
    };
    nodes.iter().find(answers).expect("an owner")
}

#[test]
#[ignore = "needs servers: scripts/valkey"]
fn nothing_is_lost_when_a_primary_dies_or_slots_move() {
    let mut nodes = start_nodes();
    join(&nodes);
    let addresses = nodes.iter().map(|node| format!("redis://127.0.0.1:{}/", node.port()));
    let client = ClusterClient::builder(addresses).retries(3).build().unwrap();
    let mut connection = client.get_connection().unwrap();
    let all = batches(0..ITEMS);
    for batch in &all {
        let insert = ["CF.INSERT", "CAPACITY", "10000", "ITEMS"];
        let added = until("an insert", || try_on(&mut connection, &insert, batch));
        assert!(added.iter().all(|&added| added == 1));
    }
    nodes[..3].iter().for_each(replicated);

    // A primary is killed. Its replica takes over, and has all of it.
    drop(nodes.remove(0));
    let mut connection = until("failover", || {
        // A new connection, which learns who has the slots.
        let mut fresh = client.get_connection().ok()?;
        all.iter()
            .all(|batch| try_on(&mut fresh, &["CF.MEXISTS"], batch).is_some())
            .then_some(fresh)
    });
    for batch in &all {
        let found = until("failover", || try_on(&mut connection, &["CF.MEXISTS"], batch));
        assert!(found.iter().all(|&found| found == 1));
    }

    // A filter moves while others are added to it. All that was acknowledged is there.
    let moved = key(0);
    let from = owner(&nodes, &moved);
    let to = nodes[..2].iter().find(|node| node.port() != from.port()).unwrap();
    let (stop, more) = (AtomicBool::new(false), batches(ITEMS..2 * ITEMS));
    let more: Vec<_> = more.into_iter().filter(|batch| batch.0 == 0).collect();
    let acknowledged = scope(|scope| {
        let writer = scope.spawn(|| {
            let mut connection = client.get_connection().unwrap();
            let mut acknowledged = Vec::new();
            for item in more.iter().flat_map(|batch| &batch.1) {
                let batch = (0, vec![item.clone()]);
                if try_on(&mut connection, &["CF.INSERT", "ITEMS"], &batch).is_some() {
                    acknowledged.push(item.clone());
                }
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
            acknowledged
        });
        sleep(Duration::from_millis(200));
        migrate(&moved, from, to);
        sleep(Duration::from_millis(500));
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    assert!(acknowledged.len() > 10, "{} items", acknowledged.len());
    for some in acknowledged.chunks(BATCH) {
        let batch = (0, some.to_vec());
        let found = until("a lookup", || try_on(&mut connection, &["CF.MEXISTS"], &batch));
        assert!(found.iter().all(|&found| found == 1));
    }
    assert!(crate::server::run(&mut to.connect("resp2"), &format!("CF.INFO {moved}")).is_ok());
}
