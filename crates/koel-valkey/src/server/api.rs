//! Functions of the server, looked up by name when the module is loaded.
//!
//! The server passes one function, which finds the others. Functions that came after Redis 7.0 are
//! `Option`s, so that one file serves all servers. The signatures are those of `redismodule.h` of
//! Redis 7.0 and `valkeymodule.h` of Valkey 9.

use std::ffi::{CStr, c_char, c_double, c_int, c_long, c_longlong, c_ulonglong, c_void};
use std::sync::OnceLock;

macro_rules! opaque {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])*
        #[repr(C)]
        pub(super) struct $name {
            _opaque: [u8; 0],
        })*
    };
}

opaque! {
    /// What one call of the module works with.
    RawContext;
    /// A string of the server.
    RawString;
    /// An open key.
    RawKey;
    /// A data type.
    RawType;
    /// An RDB or append-only file.
    RawIo;
    /// A digest that is computed.
    RawDigest;
    /// INFO that is written.
    RawInfo;
    /// A command.
    RawCommand;
    /// A client that waits for a thread.
    RawBlocked;
    /// A defragmentation that is running.
    RawDefrag;
    /// The reply to a command that the module has called.
    RawReply;
    /// What INFO says.
    RawServerInfo;
}

pub(super) type CommandFn =
    unsafe extern "C" fn(*mut RawContext, *mut *mut RawString, c_int) -> c_int;
pub(super) type FreeFn = unsafe extern "C" fn(*mut RawContext, *mut c_void);
pub(super) type DisconnectFn = unsafe extern "C" fn(*mut RawContext, *mut RawBlocked);
pub(super) type InfoFn = unsafe extern "C" fn(*mut RawInfo, c_int);
pub(super) type GetNumberFn = unsafe extern "C" fn(*const c_char, *mut c_void) -> c_longlong;
pub(super) type SetNumberFn =
    unsafe extern "C" fn(*const c_char, c_longlong, *mut c_void, *mut *mut RawString) -> c_int;
pub(super) type ApplyFn =
    unsafe extern "C" fn(*mut RawContext, *mut c_void, *mut *mut RawString) -> c_int;

/// `RedisModule_OnLoad` and all functions below return one of these.
pub(super) const OK: c_int = 0;
pub(super) const ERR: c_int = 1;
pub(super) const API_VERSION: c_int = 1;

pub(super) const READ: c_int = 1;
pub(super) const WRITE: c_int = 2;
pub(super) const KEY_EMPTY: c_int = 0;
pub(super) const KEY_MODULE: c_int = 6;

/// Flags of a context: a script or a transaction is running; the server is a replica that nobody
/// may write; it is in a cluster; the command comes from the master; files are being read; this is
/// a child process; clients cannot be blocked; RESP3.
pub(super) const LUA: c_int = 1;
pub(super) const MULTI: c_int = 1 << 1;
pub(super) const READ_ONLY: c_int = 1 << 4;
pub(super) const CLUSTER: c_int = 1 << 5;
pub(super) const FROM_MASTER: c_int = 1 << 12;
pub(super) const LOADING: c_int = 1 << 13;
pub(super) const IS_CHILD: c_int = 1 << 20;
pub(super) const DENY_BLOCKING: c_int = 1 << 21;
pub(super) const RESP3: c_int = 1 << 22;

/// A number of a module in the configuration that is a number of bytes.
pub(super) const CONFIG_MEMORY: c_int = 1 << 7;
/// When extra data of a type is saved: before all keys.
pub(super) const BEFORE_KEYS: c_int = 1;

/// Notifications of modules.
pub(super) const NOTIFY_MODULE: c_int = 1 << 13;

/// Options of a module: it notices errors of RDB files itself; it says which keys were changed; it
/// may load another data set while it serves this one; its keys may move to another node of a
/// cluster as commands, beside those that the server has.
pub(super) const HANDLES_IO_ERRORS: c_int = 1;
pub(super) const NO_IMPLICIT_SIGNAL: c_int = 2;
pub(super) const HANDLES_ASYNC_LOAD: c_int = 4;
pub(super) const HANDLES_SLOT_MIGRATION: c_int = 1 << 5;

/// What the server does with values of a type: version 5 of the structure, as of Redis 7.2. Older
/// servers do not look at the fields that they do not know.
#[repr(C)]
pub(super) struct TypeMethods {
    pub(super) version: u64,
    pub(super) rdb_load: unsafe extern "C" fn(*mut RawIo, c_int) -> *mut c_void,
    pub(super) rdb_save: unsafe extern "C" fn(*mut RawIo, *mut c_void),
    pub(super) aof_rewrite: unsafe extern "C" fn(*mut RawIo, *mut RawString, *mut c_void),
    pub(super) mem_usage: unsafe extern "C" fn(*const c_void) -> usize,
    pub(super) digest: unsafe extern "C" fn(*mut RawDigest, *mut c_void),
    pub(super) free: unsafe extern "C" fn(*mut c_void),
    pub(super) aux_load: unsafe extern "C" fn(*mut RawIo, c_int, c_int) -> c_int,
    pub(super) aux_save: unsafe extern "C" fn(*mut RawIo, c_int),
    pub(super) aux_save_triggers: c_int,
    pub(super) free_effort: unsafe extern "C" fn(*mut RawString, *const c_void) -> usize,
    pub(super) unlink: *const c_void,
    pub(super) copy:
        unsafe extern "C" fn(*mut RawString, *mut RawString, *const c_void) -> *mut c_void,
    pub(super) defrag:
        unsafe extern "C" fn(*mut RawDefrag, *mut RawString, *mut *mut c_void) -> c_int,
    pub(super) mem_usage2: *const c_void,
    pub(super) free_effort2: *const c_void,
    pub(super) unlink2: *const c_void,
    pub(super) copy2: *const c_void,
    pub(super) aux_save2: unsafe extern "C" fn(*mut RawIo, c_int),
}

/// Finds a function of this name, and writes it to the address.
pub(super) type GetApi = unsafe extern "C" fn(*const c_char, *mut c_void) -> c_int;

macro_rules! functions {
    (required { $($name:ident: $type:ty;)* } optional { $($later:ident: $later_type:ty;)* }) => {
        #[expect(non_snake_case, reason = "the names of the server")]
        pub(super) struct Api {
            $(pub(super) $name: $type,)*
            $(pub(super) $later: Option<$later_type>,)*
        }

        impl Api {
            /// Looks all functions up.
            ///
            /// # Errors
            /// The name of a function that the server should have.
            ///
            /// # Safety
            /// `get` must be the server's.
            unsafe fn find(get: GetApi) -> Result<Self, &'static str> {
                Ok(Self {
                    $($name: {
                        let name = concat!("RedisModule_", stringify!($name), "\0");
                        // SAFETY: the type is a function pointer, with the server's signature.
                        unsafe { lookup::<$type>(get, name) }.ok_or(name)?
                    },)*
                    $($later: {
                        let name = concat!("RedisModule_", stringify!($later), "\0");
                        // SAFETY: as above.
                        unsafe { lookup::<$later_type>(get, name) }
                    },)*
                })
            }
        }
    };
}

functions! {
    required {
        TryAlloc: unsafe extern "C" fn(usize) -> *mut c_void;
        Calloc: unsafe extern "C" fn(usize, usize) -> *mut c_void;
        Realloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
        Free: unsafe extern "C" fn(*mut c_void);
        MallocSize: unsafe extern "C" fn(*mut c_void) -> usize;
        IsModuleNameBusy: unsafe extern "C" fn(*const c_char) -> c_int;
        SetModuleAttribs: unsafe extern "C" fn(*mut RawContext, *const c_char, c_int, c_int);
        SetModuleOptions: unsafe extern "C" fn(*mut RawContext, c_int);
        CreateCommand: unsafe extern "C" fn(
            *mut RawContext, *const c_char, CommandFn, *const c_char, c_int, c_int, c_int,
        ) -> c_int;
        GetCommand: unsafe extern "C" fn(*mut RawContext, *const c_char) -> *mut RawCommand;
        SetCommandInfo: unsafe extern "C" fn(*mut RawCommand, *const c_void) -> c_int;
        CreateDataType: unsafe extern "C" fn(
            *mut RawContext, *const c_char, c_int, *mut TypeMethods,
        ) -> *mut RawType;
        RegisterInfoFunc: unsafe extern "C" fn(*mut RawContext, InfoFn) -> c_int;
        InfoAddSection: unsafe extern "C" fn(*mut RawInfo, *const c_char) -> c_int;
        InfoAddFieldULongLong:
            unsafe extern "C" fn(*mut RawInfo, *const c_char, c_ulonglong) -> c_int;
        Log: unsafe extern "C" fn(*mut RawContext, *const c_char, *const c_char, ...);
        StringPtrLen: unsafe extern "C" fn(*const RawString, *mut usize) -> *const c_char;
        GetContextFlags: unsafe extern "C" fn(*mut RawContext) -> c_int;
        OpenKey: unsafe extern "C" fn(*mut RawContext, *mut RawString, c_int) -> *mut RawKey;
        CloseKey: unsafe extern "C" fn(*mut RawKey);
        KeyType: unsafe extern "C" fn(*mut RawKey) -> c_int;
        ModuleTypeGetType: unsafe extern "C" fn(*mut RawKey) -> *mut RawType;
        ModuleTypeGetValue: unsafe extern "C" fn(*mut RawKey) -> *mut c_void;
        GetAbsExpire: unsafe extern "C" fn(*mut RawKey) -> c_longlong;
        ModuleTypeSetValue: unsafe extern "C" fn(*mut RawKey, *mut RawType, *mut c_void) -> c_int;
        SignalModifiedKey: unsafe extern "C" fn(*mut RawContext, *mut RawString) -> c_int;
        Milliseconds: unsafe extern "C" fn() -> c_longlong;
        Replicate:
            unsafe extern "C" fn(*mut RawContext, *const c_char, *const c_char, ...) -> c_int;
        ReplicateVerbatim: unsafe extern "C" fn(*mut RawContext) -> c_int;
        NotifyKeyspaceEvent: unsafe extern "C" fn(
            *mut RawContext, c_int, *const c_char, *mut RawString,
        ) -> c_int;
        BlockClient: unsafe extern "C" fn(
            *mut RawContext,
            Option<CommandFn>,
            Option<CommandFn>,
            Option<FreeFn>,
            c_longlong,
        ) -> *mut RawBlocked;
        SetDisconnectCallback: unsafe extern "C" fn(*mut RawBlocked, DisconnectFn);
        BlockedClientMeasureTimeStart: unsafe extern "C" fn(*mut RawBlocked) -> c_int;
        BlockedClientMeasureTimeEnd: unsafe extern "C" fn(*mut RawBlocked) -> c_int;
        UnblockClient: unsafe extern "C" fn(*mut RawBlocked, *mut c_void) -> c_int;
        AbortBlock: unsafe extern "C" fn(*mut RawBlocked) -> c_int;
        GetBlockedClientPrivateData: unsafe extern "C" fn(*mut RawContext) -> *mut c_void;
        AvoidReplicaTraffic: unsafe extern "C" fn() -> c_int;
        GetThreadSafeContext: unsafe extern "C" fn(*mut RawBlocked) -> *mut RawContext;
        FreeThreadSafeContext: unsafe extern "C" fn(*mut RawContext);
        ThreadSafeContextLock: unsafe extern "C" fn(*mut RawContext);
        ThreadSafeContextUnlock: unsafe extern "C" fn(*mut RawContext);
        HoldString: unsafe extern "C" fn(*mut RawContext, *mut RawString) -> *mut RawString;
        CreateString: unsafe extern "C" fn(
            *mut RawContext, *const c_char, usize,
        ) -> *mut RawString;
        FreeString: unsafe extern "C" fn(*mut RawContext, *mut RawString);
        Call: unsafe extern "C" fn(
            *mut RawContext, *const c_char, *const c_char, ...
        ) -> *mut RawReply;
        FreeCallReply: unsafe extern "C" fn(*mut RawReply);
        GetServerInfo:
            unsafe extern "C" fn(*mut RawContext, *const c_char) -> *mut RawServerInfo;
        FreeServerInfo: unsafe extern "C" fn(*mut RawContext, *mut RawServerInfo);
        ServerInfoGetFieldUnsigned: unsafe extern "C" fn(
            *mut RawServerInfo, *const c_char, *mut c_int,
        ) -> c_ulonglong;
        ServerInfoGetFieldC:
            unsafe extern "C" fn(*mut RawServerInfo, *const c_char) -> *const c_char;
        GetRandomBytes: unsafe extern "C" fn(*mut u8, usize);
        RegisterNumericConfig: unsafe extern "C" fn(
            *mut RawContext, *const c_char, c_longlong, c_int, c_longlong, c_longlong,
            GetNumberFn, SetNumberFn, Option<ApplyFn>, *mut c_void,
        ) -> c_int;
        LoadConfigs: unsafe extern "C" fn(*mut RawContext) -> c_int;
        WrongArity: unsafe extern "C" fn(*mut RawContext) -> c_int;
        ReplyWithError: unsafe extern "C" fn(*mut RawContext, *const c_char) -> c_int;
        ReplyWithSimpleString: unsafe extern "C" fn(*mut RawContext, *const c_char) -> c_int;
        ReplyWithLongLong: unsafe extern "C" fn(*mut RawContext, c_longlong) -> c_int;
        ReplyWithDouble: unsafe extern "C" fn(*mut RawContext, c_double) -> c_int;
        ReplyWithBool: unsafe extern "C" fn(*mut RawContext, c_int) -> c_int;
        ReplyWithNull: unsafe extern "C" fn(*mut RawContext) -> c_int;
        ReplyWithStringBuffer:
            unsafe extern "C" fn(*mut RawContext, *const c_char, usize) -> c_int;
        ReplyWithArray: unsafe extern "C" fn(*mut RawContext, c_long) -> c_int;
        ReplyWithMap: unsafe extern "C" fn(*mut RawContext, c_long) -> c_int;
        SaveUnsigned: unsafe extern "C" fn(*mut RawIo, u64);
        SaveStringBuffer: unsafe extern "C" fn(*mut RawIo, *const c_char, usize);
        LoadUnsigned: unsafe extern "C" fn(*mut RawIo) -> u64;
        LoadStringBuffer: unsafe extern "C" fn(*mut RawIo, *mut usize) -> *mut c_char;
        IsIOError: unsafe extern "C" fn(*mut RawIo) -> c_int;
        LogIOError: unsafe extern "C" fn(*mut RawIo, *const c_char, *const c_char, ...);
        EmitAOF: unsafe extern "C" fn(*mut RawIo, *const c_char, *const c_char, ...);
        DigestAddStringBuffer: unsafe extern "C" fn(*mut RawDigest, *const c_char, usize);
        DigestEndSequence: unsafe extern "C" fn(*mut RawDigest);
        DefragAlloc: unsafe extern "C" fn(*mut RawDefrag, *mut c_void) -> *mut c_void;
    }
    optional {
        TryCalloc: unsafe extern "C" fn(usize, usize) -> *mut c_void;
        TryRealloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
        CachedMicroseconds: unsafe extern "C" fn() -> c_longlong;
        AddACLCategory: unsafe extern "C" fn(*mut RawContext, *const c_char) -> c_int;
        SetCommandACLCategories: unsafe extern "C" fn(*mut RawCommand, *const c_char) -> c_int;
    }
}

/// Looks a function up.
///
/// # Safety
/// `get` must be the server's, and `F` a function pointer with the signature of that function.
unsafe fn lookup<F: Copy>(get: GetApi, name: &'static str) -> Option<F> {
    let name = CStr::from_bytes_with_nul(name.as_bytes()).ok()?;
    let mut found: Option<F> = None;
    // SAFETY: the server writes a pointer or nothing; a null pointer is `None`.
    let status = unsafe { get(name.as_ptr(), (&raw mut found).cast()) };
    found.filter(|_| status == OK)
}

static API: OnceLock<Api> = OnceLock::new();

/// The functions of the server, if the module was loaded into one.
#[inline]
pub(super) fn loaded() -> Option<&'static Api> {
    API.get()
}

/// The functions of the server.
///
/// # Panics
/// If the module was not loaded into a server.
#[inline]
pub(super) fn api() -> &'static Api {
    API.get().expect("the module is loaded")
}

/// Looks all functions up. Allocates nothing before they are there.
///
/// # Errors
/// The name of a function that the server should have.
///
/// # Safety
/// `context` must be that of `RedisModule_OnLoad`.
pub(super) unsafe fn find_all(context: *mut RawContext) -> Result<&'static Api, &'static str> {
    // SAFETY: the first word of this context is the function that finds the others.
    let get = unsafe { *context.cast::<GetApi>() };
    // SAFETY: it is the server's.
    let api = unsafe { Api::find(get) }?;
    Ok(API.get_or_init(|| api))
}
