package shm

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

// file returns a snapshot file with the given payloads in slots of 256 bytes.
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
	want := RankLoad{At: 1787400000.1, Running: 6, Waiting: 2, Used: 167936, Total: 409600, Usage: 0.41, Generated: 388.1, CacheHits: 0.37}
	if err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	// Rank 0 has written its timestamp, rank 1 only its rank, rank 2 nothing; rank 3 is busy.
	got, err = Read(bytes.NewReader(file("\x81\xa9timestamp\x05", "\x81\xa7dp_rank\x01", "", "\x83\xa7dp_rank\x03\xa9timestamp\x07\xb0num_running_reqs\x09")))
	if err != nil || len(got) != 2 || got[0] != (RankLoad{At: 5}) || got[1] != (RankLoad{At: 7, Running: 9}) {
		t.Errorf("four ranks: %+v, %v", got, err)
	}
}

func TestReadErrors(t *testing.T) {
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
		"another file":       {change(0, 'X'), "not a file of load snapshots"},
		"another version":    {change(4, 3), "version 3 is not supported (want 2)"},
		"no ranks":           {change(6, 0), "header: 0 ranks of"},
		"ranks beyond it":    {change(6, 2), "rank 1: EOF"},
		"huge slots":         {change(11, 9), "header: 1 ranks of 151011328 bytes"},
		"a length beyond it": {change(14, 1), "do not fit into a slot of"},
		"no map":             {file("\x07"), "not a map"},
		"half a map":         {file("\x82\xa9timestamp\x05"), "ends in the middle"},
		"another's slot":     {file("\x81\xa7dp_rank\x02"), "belongs to rank 2"},
		"words":              {file("\x81\xa9timestamp\xa1x"), "invalid timestamp"},
		"below nothing":      {file("\x81\xb0num_running_reqs\xff"), "invalid num_running_reqs"},
	} {
		if got, err := Read(bytes.NewReader(c.raw)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v; want %s", name, got, err, c.want)
		}
	}
}

// changingFile changes between any two reads.
type changingFile struct {
	raw []byte
	n   byte
}

func (b *changingFile) ReadAt(p []byte, at int64) (int, error) {
	if b.n++; at > 0 {
		b.raw[len(b.raw)-100] = b.n
		b.raw[headBytes+lenBytes+11] = b.n & 0x7f
	}
	return bytes.NewReader(b.raw).ReadAt(p, at)
}

func TestTornSlot(t *testing.T) {
	if got, err := Read(&changingFile{raw: file("\x81\xa9timestamp\x05")}); err == nil || !strings.Contains(err.Error(), errTorn.Error()) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestIsSnapshot(t *testing.T) {
	for name, want := range map[string]bool{
		"/dev/shm/sglang_loads_4c00ec5647f7_b4fb99a3.shm": true, "/dev/shm/psm_1": false, "/dev/shm/sglang_loads_x": false, "/tmp/x.shm": false,
	} {
		if IsSnapshot(name) != want {
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
