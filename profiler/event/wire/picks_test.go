package wire

import (
	"encoding/base64"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/llmtop/llmtop/profiler/event"
)

// randomPicks returns the picks of a token: used of experts in each layer, ascending; expert e with a weight of
// exp(-skew e / experts).
func randomPicks(r *rand.Rand, layers, experts, used int, skew float64) (picks []uint16) {
	for range layers {
		row := make([]uint16, 0, used)
		for len(row) < used {
			e := uint16(r.IntN(experts))
			if r.Float64() < math.Exp(-skew*float64(e)/float64(experts)) && !slices.Contains(row, e) {
				row = append(row, e)
			}
		}
		slices.Sort(row)
		picks = append(picks, row...)
	}
	return picks
}

// TestPackedPicks checks that any list of picks is decoded as it was, and that a packed list is shorter than its numbers.
func TestPackedPicks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		experts := rapid.Uint16Range(0, math.MaxUint16).Draw(t, "most")
		picks := rapid.SliceOfN(rapid.OneOf(rapid.Uint16Range(0, experts), rapid.Just(uint16(missedPick))), minPacked, 300).Draw(t, "picks")
		text := appendPicks(nil, picks)
		got, ok := unpackPicks([]uint16{7}, text[1:len(text)-1])
		if !ok || got[0] != 7 || !slices.Equal(got[1:], picks) {
			t.Fatalf("%v, %v: want %v", ok, got, picks)
		}
	})
}

// TestSizeOfPicks checks the size of the picks of a token of 94 layers x 8 of 256, against the least that any code needs
// for even picks: log2 of the 8 out of 256 choices per layer.
func TestSizeOfPicks(t *testing.T) {
	const layers, experts, used = 94, 256, 8
	least := 0.0
	for i := range used {
		least += layers * math.Log2(float64(experts-i)/float64(i+1)) / 8
	}
	r := rand.New(rand.NewPCG(1, 2))
	const n = 100
	sum := 0
	for range n {
		sum += len(appendPicks(nil, randomPicks(r, layers, experts, used, 0)))
	}
	characters := float64(sum) / n
	t.Logf("%.0f characters a token, %.0f bytes in base64; the least for even picks is %.0f bytes", characters, characters*3/4, least)
	if characters*3/4 > 1.12*least {
		t.Errorf("%.0f bytes in base64, more than 12 %% above %.0f", characters*3/4, least)
	}
}

func TestMalformedPicks(t *testing.T) {
	good := appendPicks(nil, make([]uint16, 40))
	good = good[1 : len(good)-1]
	for name, text := range map[string]string{
		"empty": "", "no base64": "****", "no modulus": "KA", "truncated": string(good[:len(good)-4]),
		"too many": base64.RawStdEncoding.EncodeToString([]byte{0xff, 0xff, 0xff, 0x7f, 2, 0, 0}),
		"modulus":  base64.RawStdEncoding.EncodeToString([]byte{1, 0, 0, 0}), "width": base64.RawStdEncoding.EncodeToString([]byte{1, 2, 16, 0}),
		"beyond the modulus": base64.RawStdEncoding.EncodeToString([]byte{1, 2, 3, 0x70}),
	} {
		if picks, ok := unpackPicks(nil, []byte(text)); ok {
			t.Errorf("%s: %v", name, picks)
		}
		var d Decoder
		line := fmt.Sprintf(`{"t":"tok","a":1,"r":1,"e":%q}`, text)
		if _, err := d.Decode([]byte(line), func(event.Event) {}); err == nil {
			t.Errorf("%s: accepted %s", name, line)
		}
	}
}

func FuzzUnpackPicks(f *testing.F) {
	f.Add(appendPicks(nil, make([]uint16, 40)))
	f.Add([]byte("IQIA"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if picks, ok := unpackPicks(nil, text); ok && len(picks) > maxPacked {
			t.Errorf("%d picks", len(picks))
		}
	})
}

// BenchmarkPicks measures how a token's picks are written and read.
func BenchmarkPicks(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, skew := range []float64{0, 4} {
		e := event.Event{Kind: event.KindToken, Req: 1, ID: -1, Index: -1, N: 1, Picks: randomPicks(r, 94, 256, 8, skew)}
		line, err := Append(nil, &e)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("write 94x256 skew %v", skew), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				line, _ = Append(line[:0], &e)
			}
			b.ReportMetric(float64(len(line)), "B/token")
		})
		b.Run(fmt.Sprintf("read 94x256 skew %v", skew), func(b *testing.B) {
			var d Decoder
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.Decode(line, func(event.Event) {}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
