//! A set that is spread over a cluster: three primaries and three replicas on loopback.
//!
//! `examples/sharded_set/set.rs` is the client and has the scheme. Its 48 filters get a million
//! items. While they come, a primary is killed, and then slots move. What was acknowledged stays.

#[path = "../../examples/sharded_set/set.rs"]
mod set;

use std::env;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use redis::Value;
use redis::cluster::{ClusterClient, ClusterConnection};

use crate::push_pull;
use crate::server::{NODE, Server, bytes, module, number, ok, programs, run, until};
use set::ShardedSet;

const ITEMS: usize = 1_000_000;
const BATCH: usize = 1_000;
const NODES: usize = 6;
/// What is added while slots move.
const MORE: usize = 50_000;
/// How many filters move.
const MOVES: u64 = 6;

/// A batch is acknowledged when a replica has it as well.
const SEEN: ShardedSet = ShardedSet { name: "seen", filters: 48, replicas: 1, patience: 2000 };
/// For primaries whose replica has taken over, and that have none then.
const ALONE: ShardedSet = ShardedSet { replicas: 0, ..SEEN };

/// Items in batches, each for one filter, all filters in turn.
fn batches(range: std::ops::Range<usize>) -> Vec<Vec<String>> {
    let mut filters = vec![Vec::new(); usize::try_from(SEEN.filters).unwrap()];
    for item in range.map(|number| format!("item{number}")) {
        filters[usize::try_from(SEEN.filter_of(&item)).unwrap()].push(item);
    }
    let mut batches: Vec<(usize, Vec<String>)> = Vec::new();
    for items in filters {
        batches.extend(items.chunks(BATCH).map(<[String]>::to_vec).enumerate());
    }
    batches.sort_by_key(|batch| batch.0);
    batches.into_iter().map(|batch| batch.1).collect()
}

pub(crate) fn start_nodes() -> Vec<Server> {
    start_nodes_with(&NODE)
}

pub(crate) fn start_nodes_with(further: &[&str]) -> Vec<Server> {
    let program = programs().pop().unwrap();
    let start = || Server::start_with(&program, &[module("")], further);
    std::iter::repeat_with(start).take(NODES).collect()
}

pub(crate) fn info_has(node: &Server, question: &str, line: &str) -> Option<()> {
    let info = match ok(&mut node.connect("resp2"), question) {
        Value::VerbatimString { text, .. } => text,
        other => String::from_utf8(bytes(other)).unwrap(),
    };
    info.contains(line).then_some(())
}

pub(crate) fn id(node: &Server) -> String {
    String::from_utf8(bytes(ok(&mut node.connect("resp2"), "CLUSTER MYID"))).unwrap()
}

/// Joins three primaries, each with a third of the slots, and their replicas.
pub(crate) fn join(nodes: &[Server]) {
    for (index, node) in nodes.iter().enumerate() {
        let mut connection = node.connect("resp2");
        ok(&mut connection, &format!("CLUSTER MEET 127.0.0.1 {}", nodes[0].port()));
        if index < 3 {
            let (first, last) = (index * 16_384 / 3, (index + 1) * 16_384 / 3 - 1);
            ok(&mut connection, &format!("CLUSTER ADDSLOTSRANGE {first} {last}"));
        }
    }
    for node in nodes {
        until("joining", || {
            info_has(node, "CLUSTER INFO", &format!("cluster_known_nodes:{NODES}\r"))
        });
    }
    for (replica, primary) in nodes[3..].iter().zip(nodes) {
        let line = format!("CLUSTER REPLICATE {}", id(primary));
        until("a replica", || run(&mut replica.connect("resp2"), &line).ok());
    }
    for replica in &nodes[3..] {
        until("a first copy", || info_has(replica, "INFO replication", "master_link_status:up"));
    }
    for node in nodes {
        until("agreeing", || info_has(node, "CLUSTER INFO", "cluster_state:ok"));
    }
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

pub(crate) fn is_primary(node: &Server) -> bool {
    let Value::Array(role) = ok(&mut node.connect("resp2"), "ROLE") else { panic!("no role") };
    bytes(role[0].clone()) == b"master"
}

/// Which of the nodes has the slot of a key.
fn owner<'a>(nodes: &'a [Server], key: &str) -> &'a Server {
    let has_key =
        |node: &Server| run(&mut node.connect("resp2"), &format!("CF.INFO {key}")).is_ok();
    nodes.iter().find(|node| is_primary(node) && has_key(node)).expect("an owner")
}

fn client(nodes: &[Server]) -> ClusterClient {
    let addresses = nodes.iter().map(|node| format!("redis://127.0.0.1:{}/", node.port()));
    ClusterClient::builder(addresses)
        .retries(2)
        .response_timeout(Duration::from_secs(30))
        .build()
        .unwrap()
}

/// Adds the batches, each once. Returns those that were not acknowledged.
fn add_once(client: &ClusterClient, all: &[Vec<String>], done: &AtomicUsize) -> Vec<Vec<String>> {
    let mut connection = client.get_connection().unwrap();
    let mut refused = Vec::new();
    for batch in all {
        if SEEN.add(&mut connection, batch).is_err() {
            refused.push(batch.clone());
            // A new connection learns who has the slots now.
            connection = until("a connection", || client.get_connection().ok());
        }
        done.fetch_add(1, Ordering::Relaxed);
    }
    refused
}

/// Asserts that all items are in.
fn check(client: &ClusterClient, all: &[Vec<String>]) {
    let mut connection = client.get_connection().unwrap();
    for batch in all {
        let found = until("a lookup", || ask(client, &mut connection, batch));
        assert!(found.iter().all(|&found| found), "{} is missing", batch[0]);
    }
}

fn ask(
    client: &ClusterClient,
    connection: &mut ClusterConnection,
    batch: &[String],
) -> Option<Vec<bool>> {
    let found = SEEN.contains(connection, batch).ok();
    if found.is_none() {
        *connection = client.get_connection().ok()?;
    }
    found
}

/// Adds a million items in two threads. A primary is killed when half of them are in.
fn kill_a_primary(nodes: &mut Vec<Server>, client: &ClusterClient, all: &[Vec<String>]) {
    let (done, half) = (&AtomicUsize::new(0), all.len() / 2);
    let refused = scope(|scope| {
        let adders = [&all[..half], &all[half..]]
            .map(|share| scope.spawn(move || add_once(client, share, done)));
        while done.load(Ordering::Relaxed) < half {
            assert!(!adders.iter().all(|adder| adder.is_finished()), "a thread has failed");
            sleep(Duration::from_millis(5));
        }
        drop(nodes.remove(0));
        adders.map(|adder| adder.join().unwrap()).concat()
    });
    println!("{} of {} batches were not acknowledged", refused.len(), all.len());
    assert!(!refused.is_empty() && refused.len() < half);
    // What was not acknowledged is added again. What was is not, so it is there or it is lost.
    let mut connection = client.get_connection().unwrap();
    for batch in &refused {
        until("failover", || match ALONE.add(&mut connection, batch) {
            Ok(_) => Some(()),
            Err(_) => {
                connection = client.get_connection().ok()?;
                None
            }
        });
    }
}

/// Moves filters to another primary, while items are added and looked up in all of them.
fn move_slots(nodes: &[Server], client: &ClusterClient, old: &[Vec<String>]) {
    let (more, stop) = (batches(ITEMS..ITEMS + MORE), AtomicBool::new(false));
    scope(|scope| {
        let adder = scope.spawn(|| {
            let mut connection = client.get_connection().unwrap();
            let mut added = 0;
            for batch in more.iter().flat_map(|batch| batch.chunks(20)) {
                until("an insert", || ALONE.add(&mut connection, batch).ok());
                added += usize::from(!stop.load(Ordering::Relaxed));
            }
            added
        });
        let reader = scope.spawn(|| {
            let mut connection = client.get_connection().unwrap();
            let mut asked = 0;
            for batch in old.iter().cycle() {
                let found = until("a lookup", || ask(client, &mut connection, batch));
                assert!(found.iter().all(|&found| found), "{} is missing", batch[0]);
                asked += 1;
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
            asked
        });
        for filter in 0..MOVES {
            let key = SEEN.key(filter);
            let from = owner(nodes, &key);
            let is_other = |node: &&Server| node.port() != from.port() && is_primary(node);
            let to = nodes.iter().find(is_other).unwrap();
            migrate(&key, from, to);
            assert_eq!(owner(nodes, &key).port(), to.port());
        }
        stop.store(true, Ordering::Relaxed);
        let (added, asked) = (adder.join().unwrap(), reader.join().unwrap());
        println!("{added} inserts and {asked} lookups while {MOVES} filters moved");
        assert!(added > 0 && asked > 0);
    });
    check(client, &more);
}

#[test]
#[ignore = "needs servers: scripts/valkey"]
fn nothing_is_lost_when_a_primary_dies_or_slots_move() {
    let mut nodes = start_nodes();
    join(&nodes);
    let client = client(&nodes);
    let mut connection = client.get_connection().unwrap();
    SEEN.reserve(&mut connection, (ITEMS + MORE) as u64, 0.001).unwrap();
    let all = batches(0..ITEMS);
    kill_a_primary(&mut nodes, &client, &all);
    check(&client, &all);
    move_slots(&nodes, &client, &all);
    check(&client, &all);
    push_pull::through_any_node(&nodes);
}

#[test]
#[ignore = "needs servers: scripts/valkey"]
fn the_example_runs() {
    let nodes = start_nodes();
    join(&nodes);
    let example = env::var("KOEL_EXAMPLE").expect("KOEL_EXAMPLE: run scripts/valkey");
    let urls = nodes.iter().map(|node| format!("redis://127.0.0.1:{}/", node.port()));
    let ran = Command::new(example).args(urls).output().unwrap();
    let text = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && !ran.stdout.is_empty(), "{text}");
}
