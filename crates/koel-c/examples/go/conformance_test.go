package koel_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"

	"example.org/koel"
)

// The codes of docs/conformance/README.md.
var codes = map[koel.Code]string{
	koel.Full: "full", koel.Settings: "settings", koel.BadBytes: "bytes", koel.Base: "base",
	koel.Lines: "lines", koel.Members: "members", koel.Range: "range", koel.Different: "different",
}

// digits are bytes as hexadecimal digits in JSON.
type digits []byte

func (d *digits) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	decoded, err := hex.DecodeString(text)
	*d = decoded
	return err
}

type step struct {
	Do, Filter, Of, With, From, To, Patch, URL, Counts, Prefer, Capacity, Seed, Error string
	Key, Image, Secret, Append                                                        digits
	Keys                                                                              []digits
	Grow, Copies, Force                                                               bool
	GrowFrom                                                                          uint64 `json:"grow_from"`
	Rate                                                                              *float64
	AtMost                                                                            *float64 `json:"at_most"`
	Flip                                                                              *int
	Cut                                                                               int
	Is                                                                                any
}

type door struct {
	file    string
	filters map[string]*koel.Filter
	patches map[string][]byte
}

func (s step) edited(data []byte) []byte {
	data = append([]byte(nil), data...)
	if s.Flip != nil {
		data[*s.Flip] ^= 1
	}
	return append(data[:len(data)-s.Cut], s.Append...)
}

func built(s step) (*koel.Filter, error) {
	options := koel.Options{Grow: s.Grow, GrowFrom: s.GrowFrom, Fast: s.Prefer == "fast"}
	if s.Seed != "" {
		seed, _ := strconv.ParseUint(s.Seed, 10, 64)
		options.Seed = &seed
	}
	if s.Secret != nil {
		options.Secret = (*[16]byte)(s.Secret)
	}
	rate := 0.001
	if s.Rate != nil {
		rate = *s.Rate
	}
	capacity, _ := strconv.ParseUint(s.Capacity, 10, 64)
	return koel.New(capacity, rate, options)
}

func (d door) opened(s step) (*koel.Filter, error) {
	image := []byte(s.Image)
	if s.Image == nil {
		var err error
		if image, err = d.filters[s.Of].Bytes(); err != nil {
			return nil, err
		}
	}
	return koel.FromBytes(s.edited(image))
}

func (d door) reopened(filter *koel.Filter) (*koel.Filter, error) {
	if err := filter.Save(d.file); err != nil {
		return nil, err
	}
	mapped, err := koel.Open(d.file)
	if err != nil {
		return nil, err
	}
	defer mapped.Close()
	return mapped.Copy()
}

// run does a step, and returns its answer if it has one.
func (d door) run(s step) (any, error) {
	if s.Filter == "" {
		s.Filter = "f"
	}
	f := d.filters[s.Filter]
	makers := map[string]func() (*koel.Filter, error){
		"build":   func() (*koel.Filter, error) { return built(s) },
		"open":    func() (*koel.Filter, error) { return d.opened(s) },
		"list":    func() (*koel.Filter, error) { return d.opened(s) },
		"copy":    func() (*koel.Filter, error) { return d.filters[s.Of].Copy() },
		"reopen":  func() (*koel.Filter, error) { return d.reopened(f) },
		"patched": func() (*koel.Filter, error) { return d.filters[s.Of].Patched(s.edited(d.patches[s.Patch])) },
	}
	if maker, is := makers[s.Do]; is {
		made, err := maker()
		if err == nil {
			d.filters[s.Filter] = made
		}
		return nil, err
	}
	keys := make([][]byte, len(s.Keys))
	for i, key := range s.Keys {
		keys[i] = key
	}
	other := d.filters[s.With]
	switch s.Do {
	case "patch":
		patch, err := d.filters[s.From].PatchTo(d.filters[s.To])
		d.patches[s.Patch] = patch
		return hex.EncodeToString(patch), err
	case "add":
		if s.Copies {
			return true, f.AddCopy(s.Key)
		}
		return f.Add(s.Key)
	case "add_many":
		if s.Copies {
			return f.AddCopies(keys)
		}
		return f.AddMany(keys)
	case "remove":
		return f.Remove(s.Key)
	case "remove_many":
		return f.RemoveMany(keys)
	case "contains":
		return f.Contains(s.Key)
	case "contains_many":
		return f.ContainsMany(keys)
	case "contains_url":
		return f.ContainsURL(s.URL)
	case "count":
		return f.Count(s.Key)
	case "count_many":
		return f.CountMany(keys)
	case "refute":
		return f.Refute(s.Key)
	case "refute_many":
		return f.RefuteMany(keys, s.Force)
	case "clear":
		return nil, f.Clear()
	case "merge":
		if s.Counts == "sum" {
			return nil, f.MergeSum(other)
		}
		return nil, f.MergeMax(other)
	case "bytes", "header":
		ours, err := f.Bytes()
		if s.Do == "header" || err != nil {
			return hex.EncodeToString(ours[:192]), err
		}
		theirs, err := other.Bytes()
		return bytes.Equal(ours, theirs), err
	case "line_options":
		return f.LineOptions()
	}
	info, err := f.Info()
	told := map[string]any{
		"len": info.Len, "capacity": info.Capacity, "rate": info.Rate, "grown": info.Grown,
		"corrections": info.Corrections, "growable": info.Growable,
	}
	if answer, is := told[s.Do]; is {
		return answer, err
	}
	panic("no verb " + s.Do)
}

// sum is that of the answers for many keys, for which a number stands.
func sum(answer any) any {
	answers, many := answer.([]any)
	if !many {
		return answer
	}
	total := 0.0
	for _, one := range answers {
		if number, is := one.(float64); is {
			total += number
		} else if one == true {
			total++
		}
	}
	return total
}

func (s step) accepts(answer any, err error) bool {
	var failed *koel.Error
	if errors.As(err, &failed) || s.Error != "" {
		return failed != nil && s.Error != "" && codes[failed.Code] == s.Error
	}
	// As JSON has it.
	text, _ := json.Marshal(answer)
	answer = nil
	if json.Unmarshal(text, &answer) != nil {
		return false
	}
	if s.AtMost != nil {
		return sum(answer).(float64) <= *s.AtMost
	}
	if _, many := s.Is.([]any); !many {
		answer = sum(answer)
	}
	return s.Is == nil || reflect.DeepEqual(answer, s.Is)
}

// The scenarios of docs/conformance, in the file that KOEL_SCENARIOS names: it is made by
// `cargo run -p testkit --example scenarios c`.
func TestConformance(t *testing.T) {
	path := os.Getenv("KOEL_SCENARIOS")
	if path == "" {
		t.Skip("no KOEL_SCENARIOS")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var scenarios []struct {
		Place string
		Steps []step
	}
	if err := json.Unmarshal(text, &scenarios); err != nil || len(scenarios) == 0 {
		t.Fatal("no scenarios: ", err)
	}
	for _, scenario := range scenarios {
		d := door{filepath.Join(t.TempDir(), "filter.koel"), map[string]*koel.Filter{}, map[string][]byte{}}
		for i, s := range scenario.Steps {
			if answer, err := d.run(s); !s.accepts(answer, err) {
				t.Errorf("%s, step %d: %s answers %v %v", scenario.Place, i+1, s.Do, answer, err)
				break
			}
		}
		for _, filter := range d.filters {
			filter.Close()
		}
	}
	t.Logf("Go: ran %d scenarios", len(scenarios))
}
