// Package koel is the cuckoo filter of Koel by cgo: a set of keys in a few bits each, which reports
// an absent key at a rate that you choose, and from which keys can be removed.
//
// Any number of goroutines may ask a Filter at the same time. A method that changes it, or Close,
// needs it alone, as a map does. koel.h says what each function does.
package koel

/*
#cgo pkg-config: koel
#include <koel.h>
#include <stdlib.h>
*/
import "C"

import (
	"reflect"
	"runtime"
	"unsafe"
)

// Code is the kind of an Error.
type Code int

// The kinds of errors, as koel.h explains them.
const (
	Full      Code = C.KOEL_FULL
	Settings  Code = C.KOEL_SETTINGS
	BadBytes  Code = C.KOEL_BYTES
	Memory    Code = C.KOEL_MEMORY
	Internal  Code = C.KOEL_INTERNAL
	Base      Code = C.KOEL_BASE
	Lines     Code = C.KOEL_LINES
	Members   Code = C.KOEL_MEMBERS
	Range     Code = C.KOEL_RANGE
	Different Code = C.KOEL_DIFFERENT
	IO        Code = C.KOEL_IO
	Argument  Code = C.KOEL_ARGUMENT
	ReadOnly  Code = C.KOEL_READ_ONLY
)

// Error is an operation that failed. Nothing has changed then, but for the keys before the first
// one of a batch that found no room.
type Error struct {
	Code Code
	Text string
}

func (e *Error) Error() string { return "koel: " + e.Text }

// Filter is a cuckoo filter. Close frees it; so does the garbage collector, when it gets there.
type Filter struct{ raw *C.koel_filter }

// Options are what New may be given besides capacity and rate.
type Options struct {
	Grow     bool      // beyond the capacity, instead of the error Full
	Fast     bool      // rather than small
	GrowFrom uint64    // keys that it has room for at first
	Seed     *uint64   // of the hash
	Secret   *[16]byte // for keys that an adversary may choose
}

// Info is what a filter tells of itself.
type Info struct {
	Len, Capacity, Corrections, Size uint64
	Rate, CurrentRate                float64
	Growable, Grown, ReadOnly        bool
}

// call runs a function of C, and reads the text of its error in the same thread.
func call(function func() C.int) (C.int, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	answer := function()
	if answer < 0 {
		return answer, &Error{Code(answer), C.GoString(C.koel_last_error())}
	}
	return answer, nil
}

func (f *Filter) ask(function func() C.int) (bool, error) {
	answer, err := call(function)
	runtime.KeepAlive(f)
	return answer == 1, err
}

func (f *Filter) do(function func() C.int) error {
	_, err := f.ask(function)
	return err
}

func made(function func(raw **C.koel_filter) C.int) (*Filter, error) {
	f := new(Filter)
	var raw *C.koel_filter
	if err := f.do(func() C.int { return function(&raw) }); err != nil {
		return nil, err
	}
	f.raw = raw
	runtime.SetFinalizer(f, (*Filter).Close)
	return f, nil
}

// New builds an empty filter for so many distinct keys.
func New(capacity uint64, rate float64, options Options) (*Filter, error) {
	with := (*C.koel_options)(C.calloc(1, C.sizeof_koel_options))
	defer C.free(unsafe.Pointer(with))
	with.grow, with.fast = C.bool(options.Grow), C.bool(options.Fast)
	with.grow_from = C.uint64_t(options.GrowFrom)
	if options.Seed != nil {
		seed := C.CBytes((*[8]byte)(unsafe.Pointer(options.Seed))[:])
		defer C.free(seed)
		with.seed = (*C.uint64_t)(seed)
	}
	if options.Secret != nil {
		secret := C.CBytes(options.Secret[:])
		defer C.free(secret)
		with.secret = (*C.uint8_t)(secret)
	}
	return made(func(raw **C.koel_filter) C.int {
		return C.int(C.koel_build(C.uint64_t(capacity), C.double(rate), with, raw))
	})
}

// Open maps a file, to be asked only. Verify checks what Open does not: all but its header.
func Open(path string) (*Filter, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	return made(func(raw **C.koel_filter) C.int { return C.int(C.koel_open(name, raw)) })
}

// FromBytes copies the bytes of a file, and checks all of them.
func FromBytes(image []byte) (*Filter, error) {
	return made(func(raw **C.koel_filter) C.int {
		return C.int(C.koel_from_bytes(start(image), C.size_t(len(image)), raw))
	})
}

// Copy is a copy in memory, which can be changed. All bytes of a file are checked.
func (f *Filter) Copy() (*Filter, error) {
	defer runtime.KeepAlive(f)
	return made(func(raw **C.koel_filter) C.int { return C.int(C.koel_copy(f.raw, raw)) })
}

// Patched is the filter that a patch of PatchTo makes of this one.
func (f *Filter) Patched(patch []byte) (*Filter, error) {
	defer runtime.KeepAlive(f)
	return made(func(raw **C.koel_filter) C.int {
		return C.int(C.koel_patched(f.raw, start(patch), C.size_t(len(patch)), raw))
	})
}

// Close frees the filter. Every other method fails afterwards.
func (f *Filter) Close() error {
	runtime.SetFinalizer(f, nil)
	C.koel_free(f.raw)
	f.raw = nil
	return nil
}

// Contains tells whether a key is in. It is never false for a key that is in.
func (f *Filter) Contains(key []byte) (bool, error) {
	return f.ask(func() C.int { return C.koel_contains(f.raw, start(key), C.size_t(len(key))) })
}

// ContainsURL tells whether the host of a URL or one of its parent domains is in.
func (f *Filter) ContainsURL(url string) (bool, error) {
	text := bytes(url)
	return f.ask(func() C.int { return C.koel_contains_url(f.raw, start(text), C.size_t(len(text))) })
}

// Add adds a key unless the filter reports it, and tells whether it did.
func (f *Filter) Add(key []byte) (bool, error) {
	var added C.bool
	err := f.do(func() C.int {
		return C.int(C.koel_add(f.raw, start(key), C.size_t(len(key)), &added))
	})
	return bool(added), err
}

// AddCopy adds a copy of a key, also of one that is in.
func (f *Filter) AddCopy(key []byte) error {
	return f.do(func() C.int { return C.int(C.koel_add_copy(f.raw, start(key), C.size_t(len(key)))) })
}

// Remove removes a copy of a key that was added, and tells whether there was one.
func (f *Filter) Remove(key []byte) (bool, error) {
	var removed C.bool
	err := f.do(func() C.int {
		return C.int(C.koel_remove(f.raw, start(key), C.size_t(len(key)), &removed))
	})
	return bool(removed), err
}

// Refute tells the filter that a key was not added. True if it was reported, and is not any more.
func (f *Filter) Refute(key []byte) (bool, error) {
	var corrected C.bool
	err := f.do(func() C.int {
		return C.int(C.koel_refute(f.raw, start(key), C.size_t(len(key)), &corrected))
	})
	return bool(corrected), err
}

// Count tells how often a key was added and not removed.
func (f *Filter) Count(key []byte) (uint64, error) {
	var count C.uint64_t
	err := f.do(func() C.int {
		return C.int(C.koel_count(f.raw, start(key), C.size_t(len(key)), &count))
	})
	return uint64(count), err
}

// ContainsString is Contains for a string.
func (f *Filter) ContainsString(key string) (bool, error) { return f.Contains(bytes(key)) }

// AddString is Add for a string.
func (f *Filter) AddString(key string) (bool, error) { return f.Add(bytes(key)) }

// RemoveString is Remove for a string.
func (f *Filter) RemoveString(key string) (bool, error) { return f.Remove(bytes(key)) }

// ContainsMany is Contains for each of many keys, in one call of C.
func (f *Filter) ContainsMany(keys [][]byte) ([]bool, error) {
	return f.each(keys, func(all *C.koel_key, count C.size_t, found *C.bool) C.int {
		return C.int(C.koel_contains_many(f.raw, all, count, found))
	})
}

// AddMany is Add for each of many keys. After an error, the answers say which were added.
func (f *Filter) AddMany(keys [][]byte) ([]bool, error) {
	return f.each(keys, func(all *C.koel_key, count C.size_t, added *C.bool) C.int {
		return C.int(C.koel_add_many(f.raw, all, count, added))
	})
}

// RemoveMany is Remove for each of many keys.
func (f *Filter) RemoveMany(keys [][]byte) ([]bool, error) {
	return f.each(keys, func(all *C.koel_key, count C.size_t, removed *C.bool) C.int {
		return C.int(C.koel_remove_many(f.raw, all, count, removed))
	})
}

// AddCopies is AddCopy for each of many keys, and tells how many were added.
func (f *Filter) AddCopies(keys [][]byte) (uint64, error) {
	all, free := array(keys)
	defer free()
	var added C.uint64_t
	err := f.do(func() C.int {
		return C.int(C.koel_add_copies(f.raw, all, C.size_t(len(keys)), &added))
	})
	return uint64(added), err
}

// RefuteMany is Refute for each of many keys, all or none, and tells how many were corrected. With
// force also if more are reported than chance explains.
func (f *Filter) RefuteMany(keys [][]byte, force bool) (uint64, error) {
	all, free := array(keys)
	defer free()
	var corrections C.uint64_t
	err := f.do(func() C.int {
		return C.int(C.koel_refute_many(f.raw, all, C.size_t(len(keys)), C.bool(force), &corrections))
	})
	return uint64(corrections), err
}

// CountMany is Count for each of many keys.
func (f *Filter) CountMany(keys [][]byte) ([]uint64, error) {
	all, free := array(keys)
	defer free()
	counts := make([]uint64, len(keys)+1)
	err := f.do(func() C.int {
		return C.int(C.koel_count_many(f.raw, all, C.size_t(len(keys)), (*C.uint64_t)(&counts[0])))
	})
	return counts[:len(keys)], err
}

// Clear removes all keys and corrections.
func (f *Filter) Clear() error { return f.do(func() C.int { return C.int(C.koel_clear(f.raw)) }) }

// MergeSum adds the keys of another filter, with the sum of both counts.
func (f *Filter) MergeSum(other *Filter) error {
	defer runtime.KeepAlive(other)
	return f.do(func() C.int { return C.int(C.koel_merge_sum(f.raw, other.raw)) })
}

// MergeMax adds the keys of another filter, with the larger of both counts.
func (f *Filter) MergeMax(other *Filter) error {
	defer runtime.KeepAlive(other)
	return f.do(func() C.int { return C.int(C.koel_merge_max(f.raw, other.raw)) })
}

// Save replaces a file in one step.
func (f *Filter) Save(path string) error {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	return f.do(func() C.int { return C.int(C.koel_save(f.raw, name)) })
}

// Bytes are those of its file.
func (f *Filter) Bytes() ([]byte, error) {
	return f.taken(func(to *C.koel_bytes) C.int { return C.int(C.koel_to_bytes(f.raw, to)) })
}

// PatchTo is what changed from this filter to a newer one, for Patched.
func (f *Filter) PatchTo(newer *Filter) ([]byte, error) {
	defer runtime.KeepAlive(newer)
	return f.taken(func(to *C.koel_bytes) C.int { return C.int(C.koel_patch_to(f.raw, newer.raw, to)) })
}

// Verify checks every byte of a filter of Open.
func (f *Filter) Verify() error { return f.do(func() C.int { return C.int(C.koel_verify(f.raw)) }) }

// Info is what the filter tells of itself.
func (f *Filter) Info() (Info, error) {
	var info C.koel_info
	err := f.do(func() C.int { return C.int(C.koel_describe(f.raw, &info)) })
	return Info{
		uint64(info.len), uint64(info.capacity), uint64(info.corrections), uint64(info.size),
		float64(info.rate), float64(info.current_rate),
		bool(info.growable), bool(info.grown), bool(info.read_only),
	}, err
}

// LineOptions are those by which the keys were made of lines; empty if each is its own bytes.
func (f *Filter) LineOptions() (string, error) {
	var options *C.char
	err := f.do(func() C.int { return C.int(C.koel_line_options(f.raw, &options)) })
	return C.GoString(options), err
}

func (f *Filter) each(
	keys [][]byte, function func(*C.koel_key, C.size_t, *C.bool) C.int,
) ([]bool, error) {
	all, free := array(keys)
	defer free()
	answers := make([]bool, len(keys)+1)
	err := f.do(func() C.int {
		return function(all, C.size_t(len(keys)), (*C.bool)(&answers[0]))
	})
	return answers[:len(keys)], err
}

func (f *Filter) taken(function func(*C.koel_bytes) C.int) ([]byte, error) {
	var bytes C.koel_bytes
	err := f.do(func() C.int { return function(&bytes) })
	defer C.koel_free_bytes(&bytes)
	return append([]byte(nil), unsafe.Slice((*byte)(bytes.data), int(bytes.len))...), err
}

// array copies keys to memory of C, since C may not get pointers to pointers of Go.
func array(keys [][]byte) (*C.koel_key, func()) {
	size := len(keys) * C.sizeof_koel_key
	for _, key := range keys {
		size += len(key)
	}
	memory := C.malloc(C.size_t(size) + 1)
	all := unsafe.Slice((*C.koel_key)(memory), len(keys))
	text := unsafe.Slice((*byte)(memory), size)[len(keys)*C.sizeof_koel_key:]
	for i, key := range keys {
		all[i].data, all[i].len = start(text), C.size_t(len(key))
		text = text[copy(text, key):]
	}
	return (*C.koel_key)(memory), func() { C.free(memory) }
}

// start is a pointer to bytes, or nil.
func start(bytes []byte) unsafe.Pointer {
	if len(bytes) == 0 {
		return nil
	}
	return unsafe.Pointer(&bytes[0])
}

// bytes are those of a string, where it lies: C only reads them.
func bytes(text string) []byte {
	header := (*reflect.StringHeader)(unsafe.Pointer(&text))
	return unsafe.Slice((*byte)(unsafe.Pointer(header.Data)), len(text))
}
