package store

import "testing"

func TestDeltaRepeatsOnlyWhatDiffers(t *testing.T) {
	before := `{"t":"report","a":6375986331,"out":[102,"derived"],"c":[0,8,2,0,0,0,0,0,0]}`
	line := `{"t":"report","a":7376000004,"out":[9,"derived"],"c":[0,18,2,0,0,0,0,0,0],"load":1}`
	delta := appendDelta(nil, []byte(before), []byte(line))
	if got := applyDelta(nil, []byte(before), delta); string(got) != line {
		t.Errorf("%s, want %s", got, line)
	}
	if len(delta) > len(line)/2 {
		t.Errorf("%d bytes for a line of %d", len(delta), len(line))
	}
}

func FuzzDelta(f *testing.F) {
	f.Add([]byte("a 1, b 20, c 3"), []byte("a 1, b 2, d 3"), []byte{3, 200, 1})
	f.Add([]byte("1"), []byte("11"), []byte{})
	f.Add([]byte(""), []byte("x"), []byte{0, 0, 9})
	f.Fuzz(func(t *testing.T, before, line, delta []byte) {
		if got := applyDelta(nil, before, appendDelta(nil, before, line)); string(got) != string(line) {
			t.Errorf("%q after %q is %q", line, before, got)
		}
		applyDelta(nil, before, delta) // any bytes
	})
}
