package snapshot

import (
	"bytes"
	"encoding/binary"
	"os"
	"strings"
	"testing"
)

func sample(t testing.TB) []byte {
	t.Helper()
	raw, err := os.ReadFile("testdata/sglang_loads.shm")
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// file is one of some ranks, each with what stands in its slot of 256 bytes.
func file(payloads ...string) []byte {
	raw := append([]byte(magic), version, 0, byte(len(payloads)), 0, 0, 1, 0, 0)
	for _, p := range payloads {
		slot := make([]byte, 256)
		binary.LittleEndian.PutUint32(slot, uint32(len(p)))
		copy(slot[lenBytes:], p)
		raw = append(raw, slot...)
	}
	return raw
}

func TestRead(t *testing.T) {
	got, err := Read(bytes.NewReader(sample(t)))
	want := Load{At: 1787400000.1, Running: 6, Waiting: 2, Used: 167936, Total: 409600, Usage: 0.41, Generated: 388.1, CacheHits: 0.37}
	if err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	// Rank 0 has written its timestamp, rank 1 nothing but its rank, rank 2 nothing at all, rank 3 is busy.
	got, err = Read(bytes.NewReader(file("\x81\xa9timestamp\x05", "\x81\xa7dp_rank\x01", "", "\x83\xa7dp_rank\x03\xa9timestamp\x07\xb0num_running_reqs\x09")))
	if err != nil || len(got) != 2 || got[0] != (Load{At: 5}) || got[1] != (Load{At: 7, Running: 9}) {
		t.Errorf("of four ranks %+v, %v", got, err)
	}
}

func TestReadWhatIsNone(t *testing.T) {
	change := func(at int, b byte) []byte {
		raw := sample(t)
		raw[at] = b
		return raw
	}
	for name, c := range map[string]struct {
		raw  []byte
		want string
	}{
		"nothing":            {nil, "EOF"},
		"another file":       {change(0, 'X'), "none of snapshots"},
		"another version":    {change(4, 3), "version 3, and llmtop knows 2"},
		"no ranks":           {change(6, 0), "of 0 ranks"},
		"ranks beyond it":    {change(6, 2), "rank 1: EOF"},
		"huge slots":         {change(11, 9), "bytes each"},
		"a length beyond it": {change(14, 1), "in a slot of"},
		"no map":             {file("\x07"), "no map"},
		"half a map":         {file("\x82\xa9timestamp\x05"), "ends in the middle"},
		"another's slot":     {file("\x81\xa7dp_rank\x02"), "of rank 2"},
		"words":              {file("\x81\xa9timestamp\xa1x"), "timestamp makes no sense"},
		"below nothing":      {file("\x81\xb0num_running_reqs\xff"), "makes no sense"},
	} {
		if got, err := Read(bytes.NewReader(c.raw)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v; want %s", name, got, err, c.want)
		}
	}
}

// busy is a file into which somebody writes between all looks at it.
type busy struct {
	raw []byte
	n   byte
}

func (b *busy) ReadAt(p []byte, at int64) (int, error) {
	if b.n++; at > 0 {
		b.raw[len(b.raw)-100] = b.n
		b.raw[headBytes+lenBytes+11] = b.n & 0x7f
	}
	return bytes.NewReader(b.raw).ReadAt(p, at)
}

func TestATornSlotIsNotTaken(t *testing.T) {
	if got, err := Read(&busy{raw: file("\x81\xa9timestamp\x05")}); err == nil || !strings.Contains(err.Error(), errTorn.Error()) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestNamed(t *testing.T) {
	for name, want := range map[string]bool{
		"/dev/shm/sglang_loads_4c00ec5647f7_b4fb99a3.shm": true, "/dev/shm/psm_1": false, "/dev/shm/sglang_loads_x": false, "/tmp/x.shm": false,
	} {
		if Named(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(sample(f))
	f.Add(file("\x81\xa9timestamp\x05", "\x82\xa7dp_rank\x01\xa9timestamp\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("SLNS\x02\x00\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := Read(bytes.NewReader(raw))
		if err != nil && len(got) > 0 || len(got) > maxRanks {
			t.Errorf("%d ranks, %v", len(got), err)
		}
		for _, l := range got {
			for name, v := range l.fields() {
				if !(*v >= 0 && *v <= 1e18) {
					t.Errorf("%s is %v", name, *v)
				}
			}
		}
	})
}
