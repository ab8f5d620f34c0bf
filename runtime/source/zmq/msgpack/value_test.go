package msgpack

import (
	"bytes"
	"errors"
	"math"
	"os"
	"reflect"
	"testing"
)

func TestDecode(t *testing.T) {
	for name, c := range map[string]struct {
		data string
		want any
	}{
		"small":          {"\x07", int64(7)},
		"negative":       {"\xff", int64(-1)},
		"nil":            {"\xc0", nil},
		"true":           {"\xc3", true},
		"8 bits":         {"\xcc\xff", int64(255)},
		"64 bits":        {"\xcf\xff\xff\xff\xff\xff\xff\xff\xfe", uint64(math.MaxUint64 - 1)},
		"signed 8 bits":  {"\xd0\x80", int64(-128)},
		"signed 32 bits": {"\xd2\xff\xff\xff\xfe", int64(-2)},
		"float 32":       {"\xca\x3f\xc0\x00\x00", 1.5},
		"float 64":       {"\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00", 1.5},
		"text":           {"\xa2hi", "hi"},
		"longer text":    {"\xd9\x02hi", "hi"},
		"bytes":          {"\xc4\x02hi", []byte("hi")},
		"extension":      {"\xd4\x01x", []byte("\x01x")},
		"list":           {"\x92\x01\xa1a", []any{int64(1), "a"}},
		"longer list":    {"\xdc\x00\x01\x05", []any{int64(5)}},
		"map":            {"\x82\xa1a\x01\x05\x06", Map{"a": int64(1)}},
		"longer map":     {"\xde\x00\x01\xa1a\x90", Map{"a": []any{}}},
	} {
		got, err := Decode([]byte(c.data))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v (%v), want %v", name, got, err, c.want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, data := range map[string][]byte{
		"nothing":         nil,
		"cut":             []byte("\xcf\x00"),
		"cut text":        []byte("\xdb\xff\xff\xff\xffabc"),
		"list of 4 G":     []byte("\xdd\xff\xff\xff\xff\x01"),
		"map of 4 G":      []byte("\xdf\xff\xff\xff\xff\x01"),
		"unused byte":     []byte("\xc1"),
		"more than one":   []byte("\x01\x02"),
		"deep":            bytes.Repeat([]byte{0x91}, 1<<20),
		"too many values": append([]byte("\xdd\x00\x20\x00\x00"), make([]byte, 1<<21)...),
	} {
		if v, err := Decode(data); err == nil {
			t.Errorf("%s: %v", name, v)
		}
	}
	if _, err := Decode(bytes.Repeat([]byte{0x91}, 1<<20)); !errors.Is(err, ErrBounds) {
		t.Errorf("deep: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, name := range []string{"sglang_fpm", "vllm_kv_event_array", "vllm_kv_event_map"} {
		sample, err := os.ReadFile("../testdata/" + name + ".msgpack")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(sample)
	}
	f.Add([]byte("\xdd\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := Decode(data)
		if (err == nil) != (len(data) > 0 && err == nil) || err != nil && v != nil {
			t.Errorf("%v, %v", v, err)
		}
		Number(v)
	})
}
