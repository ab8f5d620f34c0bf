package cgroup

import (
	"bytes"
	"testing"
)

func TestKeyed(t *testing.T) {
	file := []byte("MemTotal:       16000 kB\nMemTotalFake: 1 kB\nread_bytes: 77\nnone:\nword: x\nplain 5\n")
	for key, want := range map[string]uint64{"MemTotal": 16000, "read_bytes": 77, "plain": 5} {
		if got, ok := Keyed(file, key); !ok || got != want {
			t.Errorf("Keyed(%q) = %d, %v; want %d", key, got, ok, want)
		}
	}
	for _, key := range []string{"Mem", "none", "word", "absent"} {
		if got, ok := Keyed(file, key); ok {
			t.Errorf("Keyed(%q) = %d, want none", key, got)
		}
	}
}

// FuzzParse checks that no content of a file stops the parsers.
func FuzzParse(f *testing.F) {
	f.Add([]byte("some avg10=0.00 avg60=0.00 avg300=0.00 total=66814\nfull avg10=0.00 total=1\n"), "some")
	f.Add([]byte("high 3\nmax 5\n"), "max")
	f.Fuzz(func(t *testing.T, file []byte, key string) {
		if _, ok := ParsePressure(file); ok && !bytes.HasPrefix(file, []byte("some ")) {
			t.Errorf("a pressure without the line some: %q", file)
		}
		if n, ok := Keyed(file, key); !ok && n != 0 {
			t.Errorf("no number, but %d", n)
		}
	})
}
