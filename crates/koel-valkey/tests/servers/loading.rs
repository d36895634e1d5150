//! Loads of the module that are refused, a file that is loaded twice, and files of the server that
//! a server without the module reads.

use redis::{Connection, Value};

use crate::server::{Server, module, number, ok, programs, reference, run};
use crate::values::{has, total};

const DIGITS: &str = "000102030405060708090a0b0c0d0e0f";
const OTHERS: &str = "ff0102030405060708090a0b0c0d0e0f";
/// Lets clients load modules.
const MAY_LOAD: [&str; 2] = ["--enable-module-command", "yes"];

/// Loads a module, and returns what the server logs if it does not.
fn load(server: &Server, connection: &mut Connection, module: &str) -> Result<Value, String> {
    let before = server.log().len();
    run(connection, &format!("MODULE LOAD {module}")).map_err(|_| server.log()[before..].to_owned())
}

/// The refused load had replaced the secret and the limit: filters made before it and after it
/// could not be merged.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn a_refused_load_changes_nothing() {
    for program in programs() {
        let ours = module(&format!("SECRET {DIGITS} MAX-KEY-BYTES 1000000"));
        let server = Server::start_with(&program, &[ours], &MAY_LOAD);
        let mut connection = server.connect("resp2");
        let connection = &mut connection;
        ok(connection, "CF.ADD before x");
        for arguments in ["", "NAME n", "NAME n TYPE someother", "COLOUR red", "MAX-KEY-BYTES no"] {
            let again = module(&format!("SECRET {OTHERS} MAX-KEY-BYTES 1000 {arguments}"));
            assert!(load(&server, connection, &again).is_err(), "{arguments}");
            assert_eq!(total(connection, "max_key_bytes"), 1_000_000, "{arguments}");
            ok(connection, "CF.ADD after x");
            ok(connection, "CF.MERGE after before");
            ok(connection, "DEL after");
        }
        assert!(run(connection, "CONFIG SET koel.max-key-bytes 0").is_err());
        assert_eq!(total(connection, "max_key_bytes"), 1_000_000);
    }
}

/// The first load that was refused had decided the settings of the next.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn a_load_after_a_refused_one_has_its_own_settings() {
    for program in programs() {
        let server = Server::start_with(&program, &[reference()], &MAY_LOAD);
        let mut connection = server.connect("resp2");
        let connection = &mut connection;
        for (arguments, reason) in [
            ("", "there is a data type MBbloomCF"),
            ("TYPE someother", "there is a command cf.reserve"),
            ("TYPE someother PREFIX kf NAME bf", "there is a module bf"),
        ] {
            let ours = module(&format!("SECRET {OTHERS} MAX-KEY-BYTES 1000 {arguments}"));
            let log = load(&server, connection, &ours).unwrap_err();
            assert!(log.contains(reason), "{log}");
        }
        ok(connection, &format!("MODULE LOAD {}", module("TYPE someother PREFIX kf SECRET NO")));
        ok(connection, "KF.RESERVE a 100000");
        ok(connection, "KF.RESERVE b 100000 SECRET NO");
        ok(connection, "KF.MERGE a b");
    }
}

#[test]
#[ignore = "needs servers: scripts/valkey"]
fn a_copy_of_the_file_is_loaded_beside_it_and_the_file_itself_is_not() {
    let arguments = "NAME second PREFIX kf TYPE someother";
    let path = module("");
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.so");
    std::fs::copy(path.trim(), &copy).unwrap();
    for program in programs() {
        let server = Server::start_with(&program, &[module("")], &MAY_LOAD);
        let mut connection = server.connect("resp2");
        let connection = &mut connection;
        let log = load(&server, connection, &module(arguments)).unwrap_err();
        assert!(log.contains("loaded already, as koel"), "{log}");
        assert!(log.contains("copy the file and load the copy"), "{log}");
        load(&server, connection, &format!("{} {arguments}", copy.display())).unwrap();
        ok(connection, "CF.ADD a x");
        ok(connection, "KF.ADD b y");
        assert!(run(connection, "KF.ADD a x").unwrap_err().starts_with("WRONGTYPE"));
        ok(connection, "DEBUG RELOAD");
        assert_eq!(number(&ok(connection, "KF.EXISTS b y")), 1);
    }
}

/// Redis 7.0 writes the name of a type that may have something to save into each file.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn a_file_without_filters_is_read_without_the_module() {
    for program in programs() {
        for secret in ["", "SECRET NO", &format!("SECRET {DIGITS}")] {
            let server = Server::start(&program, &[module(secret)]);
            let mut connection = server.connect("resp2");
            ok(&mut connection, "SET key value");
            ok(&mut connection, "SAVE");
            let is_old = has(&mut connection, "server", "redis_version:7.0").is_some();
            // As the page says.
            let needs_module = is_old && secret.is_empty();
            let modules =
                if needs_module { vec![module(&format!("SECRET {OTHERS}"))] } else { vec![] };
            let server = server.then_with(&modules, &[]);
            assert_eq!(number(&ok(&mut server.connect("resp2"), "EXISTS key")), 1, "{secret}");
        }
    }
}
