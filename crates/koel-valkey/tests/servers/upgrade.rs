//! "The module" of docs/UPGRADING.md: replicas first, a failover, then the old primaries.
//!
//! The two builds differ in their version and in one command. So this shows that servers with two
//! files work together, and not that the formats of two releases do.

use crate::cluster::is_primary;
use crate::faults::{await_pairs, fail_over, while_clients_work};
use crate::server::{
    NODE, Server, await_equal, bytes, call, module, module_before, number, ok, programs, run, until,
};

/// Whether it has the version after the upgrade.
fn is_new(node: &Server) -> bool {
    let modules = format!("{:?}", ok(&mut node.connect("resp2"), "MODULE LIST"));
    assert!(modules.contains("int(100)") || modules.contains("int(101)"), "{modules}");
    modules.contains("int(101)")
}

/// Restarts a replica with the new file.
fn upgrade(nodes: &mut Vec<Server>, replica: usize) {
    assert!(!is_primary(&nodes[replica]) && !is_new(&nodes[replica]));
    nodes[replica].kill();
    let killed = nodes.remove(replica);
    nodes.insert(replica, killed.again_with(&[module("")]));
}

#[test]
#[ignore = "needs servers: scripts/valkey"]
fn a_cluster_is_upgraded_while_clients_add_delete_and_merge() {
    let program = programs().pop().unwrap();
    let start = || Server::start_with(&program, &[module_before()], &NODE);
    let mut nodes: Vec<_> = std::iter::repeat_with(start).take(6).collect();
    while_clients_work(&mut nodes, |nodes| {
        for (_, replica) in await_pairs(nodes) {
            upgrade(nodes, replica);
        }
        for (primary, replica) in await_pairs(nodes) {
            fail_over(&nodes[replica], "");
            until("a new role", || (!is_primary(&nodes[primary])).then_some(()));
            upgrade(nodes, primary);
        }
        await_pairs(nodes);
        assert!(nodes.iter().all(is_new));
    });
}

/// On each server: a replica with another build, both ways, and files of one read by the other.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn replicas_and_files_of_another_build_are_equal() {
    for program in programs() {
        for (before, after) in [(module_before(), module("")), (module(""), module_before())] {
            let primary = Server::start(&program, &[before]);
            let mut connection = primary.connect("resp2");
            let fill = |connection: &mut redis::Connection, round: usize| {
                ok(connection, &format!("CF.INSERT f ITEMS a b{round}"));
                ok(connection, &format!("CF.RESERVE w{round} 100 WINDOW 1000"));
                ok(connection, &format!("CF.ADD w{round} a"));
                ok(connection, &format!("CF.RESERVE large{round} 300000"));
                ok(connection, &format!("CF.MERGE large{round} large{round}"));
                ok(connection, "CF.COMPACT f");
                drop(run(connection, "CF.REFUTE f absent"));
            };
            fill(&mut connection, 0);
            let replica = Server::start(&program, std::slice::from_ref(&after));
            let mut other = replica.connect("resp2");
            ok(&mut other, &format!("REPLICAOF 127.0.0.1 {}", primary.port()));
            await_equal(&primary, &replica);
            fill(&mut connection, 1);
            await_equal(&primary, &replica);
            let payload = bytes(ok(&mut connection, "DUMP f"));
            assert!(call(&mut other, &[b"RESTORE", b"g", b"0", &payload]).is_err());
            ok(&mut connection, "SAVE");
            let digest = ok(&mut connection, "DEBUG DIGEST");
            let restarted = primary.then_with(&[after], &[]);
            let mut connection = restarted.connect("resp2");
            assert_eq!(ok(&mut connection, "DEBUG DIGEST"), digest);
            assert_eq!(
                call(&mut connection, &[b"RESTORE", b"g", b"0", &payload]).map(|_| ()),
                Ok(())
            );
            assert_eq!(number(&ok(&mut connection, "CF.COUNT g a")), 2);
        }
    }
}
