//! `RedisModule_OnLoad`: reads the settings and registers the type and the commands.
//!
//! A load that is refused changes nothing of a module that runs: what can be refused comes first,
//! and then the settings are kept, in one step.

use std::ffi::{CString, c_char, c_int, c_longlong, c_void};
use std::{panic, ptr};

use super::api::{
    self, API_VERSION, CONFIG_MEMORY, CommandFn, ERR, HANDLES_ASYNC_LOAD, HANDLES_IO_ERRORS,
    HANDLES_SLOT_MIGRATION, NO_IMPLICIT_SIGNAL, OK, RawContext, RawInfo, RawString, RawType, api,
};
use super::context::{self, Context, c_string, log};
use super::keyspace;
use super::settings::{self, SecretOf, Settings};
use super::{background, describe, run, values};
use crate::command::arguments::key;
use crate::command::{COMMANDS, Command};
use crate::filter::record::ENCODING;
use crate::totals;

/// 0.1.0, as the server writes versions, and another one for the test of an upgrade.
const VERSION: c_int = if cfg!(feature = "faults") { 101 } else { 100 };
/// The category of access control lists that the reference has.
const CATEGORY: &str = "cuckoo";

/// The server calls this when it loads the module.
///
/// # Safety
/// Only a server may call it.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn RedisModule_OnLoad(
    raw: *mut RawContext,
    argv: *mut *mut RawString,
    argc: c_int,
) -> c_int {
    // SAFETY: the server passes the context for loading.
    if unsafe { api::find_all(raw) }.is_err() {
        return ERR;
    }
    // SAFETY: the server passes both.
    let strings = unsafe { context::strings(argv, argc) };
    // SAFETY: the strings are live during the call.
    let arguments = unsafe { context::all_bytes(strings) };
    // SAFETY: the context is that of this call.
    let context = unsafe { Context::new(raw) };
    match values::guarded(|| load(context, arguments)) {
        Ok(Ok(())) => OK,
        Ok(Err(problem)) => {
            log(c"warning", &format!("koel is not loaded: {problem}"));
            ERR
        }
        Err(_) => ERR,
    }
}

fn load(context: Context, arguments: Vec<&[u8]>) -> Result<(), String> {
    if koel::HUGE_PAGES {
        let build = "build it alone: cargo build --release -p koel-valkey";
        return Err(format!(
            "its memory would not be counted, because of a feature of koel; {build}"
        ));
    }
    if let Some(running) = settings::running() {
        return Err(format!(
            "this file is loaded already, as {}; to load it twice, copy the file and load the \
             copy, with another NAME, PREFIX and TYPE",
            running.name
        ));
    }
    let settings = parse(&arguments)?;
    attach(context, &settings)?;
    let of_type = create_type(context, &settings)?;
    create_commands(context, &settings)?;
    // SAFETY: the context is live.
    unsafe { (api().RegisterInfoFunc)(context.raw(), info) };
    create_setting(context, &settings)?;
    keyspace::remember_type(of_type);
    let mut random = [0; 16];
    // SAFETY: so many bytes are written.
    unsafe { (api().GetRandomBytes)(random.as_mut_ptr(), random.len()) };
    settings::publish(settings, random);
    panic::set_hook(Box::new(|info| {
        let place = info.location().map_or(String::new(), ToString::to_string);
        log(c"warning", &format!("koel: a panic at {place}"));
    }));
    Ok(())
}

/// Makes the limit a setting of the server, `NAME.max-key-bytes`.
fn create_setting(context: Context, settings: &Settings) -> Result<(), String> {
    settings::set_limit(settings.limit);
    let (register, name) = (api().RegisterNumericConfig, c"max-key-bytes".as_ptr());
    let (raw, default) = (context.raw(), signed(settings.limit));
    let (get, set, none) = (limit, set_limit, ptr::null_mut());
    // SAFETY: the context is live, and the server copies the name.
    let registered =
        unsafe { register(raw, name, default, CONFIG_MEMORY, 1, i64::MAX, get, set, None, none) };
    // SAFETY: the context is live.
    if registered != OK || unsafe { (api().LoadConfigs)(raw) } != OK {
        return Err("the setting max-key-bytes is refused: give bytes from 1 on".to_owned());
    }
    Ok(())
}

unsafe extern "C" fn limit(_name: *const c_char, _data: *mut c_void) -> c_longlong {
    signed(settings::limit())
}

unsafe extern "C" fn set_limit(
    _name: *const c_char,
    bytes: c_longlong,
    _data: *mut c_void,
    _error: *mut *mut RawString,
) -> c_int {
    settings::set_limit(u64::try_from(bytes).unwrap_or(0));
    OK
}

fn signed(bytes: u64) -> c_longlong {
    c_longlong::try_from(bytes).unwrap_or(c_longlong::MAX)
}

/// Reads `[PREFIX cf] [NAME koel] [TYPE MBbloomCF] [MAX-KEY-BYTES n] [SECRET digits|NO]`.
fn parse(arguments: &[&[u8]]) -> Result<Settings, String> {
    let mut settings = Settings::new();
    let (pairs, rest) = arguments.as_chunks();
    if let [alone] = rest {
        return Err(format!("the argument {} has no value", alone.escape_ascii()));
    }
    for [name, value] in pairs {
        let text = str::from_utf8(value).map_err(|_| "an argument is not text".to_owned())?;
        match name.to_ascii_uppercase().as_slice() {
            b"PREFIX" => settings.prefix = word(text, 1..=32)?,
            b"NAME" => settings.name = word(text, 1..=32)?,
            b"TYPE" => settings.type_name = word(text, 9..=9)?,
            b"MAX-KEY-BYTES" => {
                let bytes = text.parse().ok().filter(|&bytes: &i64| bytes > 0);
                settings.limit = bytes.map(i64::unsigned_abs).ok_or_else(|| {
                    format!("MAX-KEY-BYTES must be a number of bytes from 1 on, not {text}")
                })?;
            }
            b"SECRET" => settings.secret = secret(value)?,
            _ => {
                return Err(format!(
                    "unknown argument {}: there are PREFIX, NAME, TYPE, MAX-KEY-BYTES and SECRET",
                    name.escape_ascii()
                ));
            }
        }
    }
    Ok(settings)
}

fn secret(value: &[u8]) -> Result<SecretOf, String> {
    if value.eq_ignore_ascii_case(b"NO") {
        return Ok(SecretOf::Nowhere);
    }
    // Nobody should find it in a log.
    let problem = "SECRET must be NO or 32 hexadecimal digits";
    key(value).map(SecretOf::Argument).ok_or_else(|| problem.to_owned())
}

fn word(text: &str, lengths: std::ops::RangeInclusive<usize>) -> Result<String, String> {
    let is_word = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if is_word && lengths.contains(&text.len()) {
        return Ok(text.to_owned());
    }
    let (least, most) = lengths.into_inner();
    Err(format!("{text} must be {least} to {most} letters, digits, - or _"))
}

fn attach(context: Context, settings: &Settings) -> Result<(), String> {
    let name = c_string(&settings.name);
    // SAFETY: a C string.
    if unsafe { (api().IsModuleNameBusy)(name.as_ptr()) } != 0 {
        return Err(format!("there is a module {}: choose another NAME", settings.name));
    }
    let name = CString::into_raw(name);
    // SAFETY: the context is live. The name is never freed, because the server may keep it.
    unsafe { (api().SetModuleAttribs)(context.raw(), name, VERSION, API_VERSION) };
    let options =
        HANDLES_IO_ERRORS | NO_IMPLICIT_SIGNAL | HANDLES_ASYNC_LOAD | HANDLES_SLOT_MIGRATION;
    // SAFETY: the context is live.
    unsafe { (api().SetModuleOptions)(context.raw(), options) };
    Ok(())
}

fn create_type(context: Context, settings: &Settings) -> Result<*mut RawType, String> {
    let name = c_string(&settings.type_name);
    let mut methods = values::methods(settings.secret == SecretOf::DataSet);
    let methods = &raw mut methods;
    // SAFETY: context, name and methods are live, and the server copies the last two.
    let created =
        unsafe { (api().CreateDataType)(context.raw(), name.as_ptr(), ENCODING, methods) };
    if created.is_null() {
        return Err(format!("there is a data type {}: choose another TYPE", settings.type_name));
    }
    Ok(created)
}

fn create_commands(context: Context, settings: &Settings) -> Result<(), String> {
    if let Some(add) = api().AddACLCategory {
        let category = c_string(CATEGORY);
        // SAFETY: the context is live. A category that exists already serves as well.
        unsafe { add(context.raw(), category.as_ptr()) };
    }
    for (command, function) in COMMANDS.iter().zip(FUNCTIONS) {
        let full_name = format!("{}.{}", settings.prefix, command.name).to_ascii_lowercase();
        let name = c_string(&full_name);
        let fast = if command.fast { " fast" } else { "" };
        let flags = c_string(&format!("{}{fast}", command.access.flags()));
        let (name, flags) = (name.as_ptr(), flags.as_ptr());
        let (create, first, last) = (api().CreateCommand, command.first_key, command.last_key);
        // SAFETY: the context is live, and the server copies name and flags.
        let status = unsafe { create(context.raw(), name, function, flags, first, last, 1) };
        if status != OK {
            return Err(format!("there is a command {full_name}: choose another PREFIX"));
        }
        // SAFETY: the context is live, and the name a C string.
        let created = unsafe { (api().GetCommand)(context.raw(), name) };
        describe::describe(created, command, CATEGORY);
    }
    Ok(())
}

/// The functions of [`COMMANDS`], in their order.
const FUNCTIONS: [CommandFn; COMMANDS.len()] = [
    enter::<0>,
    enter::<1>,
    enter::<2>,
    enter::<3>,
    enter::<4>,
    enter::<5>,
    enter::<6>,
    enter::<7>,
    enter::<8>,
    enter::<9>,
    enter::<10>,
    enter::<11>,
    enter::<12>,
    enter::<13>,
    enter::<14>,
    enter::<15>,
    enter::<16>,
    enter::<17>,
    enter::<18>,
    #[cfg(feature = "faults")]
    enter::<19>,
];

/// Runs the command of this number.
unsafe extern "C" fn enter<const NUMBER: usize>(
    raw: *mut RawContext,
    argv: *mut *mut RawString,
    argc: c_int,
) -> c_int {
    // SAFETY: the server passes it to this call.
    let context = unsafe { Context::new(raw) };
    // SAFETY: the server passes both to this call.
    let strings = unsafe { context::strings(argv, argc) };
    match values::guarded(|| enter_command(&COMMANDS[NUMBER], context, strings)) {
        Ok(()) => {}
        Err(problem) => context.error(&format!("ERR {problem}")),
    }
    OK
}

fn enter_command(command: &'static Command, context: Context, strings: &[*mut RawString]) {
    let run = |arguments: &[&[u8]]| {
        if !background::begin(command, context, strings, arguments) {
            run::run_now(command, context, strings, arguments);
        }
    };
    // SAFETY: the arguments are those of this command.
    unsafe { context::with_bytes(strings, run) };
}

/// Adds a section to INFO.
unsafe extern "C" fn info(raw: *mut RawInfo, _for_crash_report: c_int) {
    // SAFETY: the server passes it to this call.
    unsafe { (api().InfoAddSection)(raw, c"filters".as_ptr()) };
    let fields = [
        (c"filters", totals::FILTERS.get()),
        (c"bytes", totals::BYTES.get()),
        (c"max_key_bytes", settings::limit()),
        (c"refused_items", totals::REFUSED.get()),
        (c"expired_items", totals::EXPIRED.get()),
        (c"commands_on_a_thread", totals::BESIDE.get()),
        (c"microseconds_on_a_thread", totals::BESIDE_MICROS.get()),
        (c"longest_microseconds_on_a_thread", totals::LONGEST_BESIDE.get()),
        (c"panics", totals::PANICS.get()),
    ];
    for (name, value) in fields {
        // SAFETY: as above.
        unsafe { (api().InfoAddFieldULongLong)(raw, name.as_ptr(), value) };
    }
}
