package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hinshun/vt10x"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/cast"
)

// tour goes through views, sizes, colours, lines to type into, and back.
const tour = `
[[step]]
wait_for = "Throughput"
[[step]]
keys = ["2", "down", "/"]
[[step]]
type = "ttft>1ms code"
[[step]]
keys = ["enter", "enter", "right", "right"]
[[step]]
marker = "smaller"
[[step]]
resize = "80x24"
[[step]]
keys = ["5", "t", "?", "pgdown", "esc", ":"]
[[step]]
type = "them"
[[step]]
key = "esc"
[[step]]
resize = "130x40"
[[step]]
keys = ["4", "6", "7", "1"]
[[step]]
wait = "1s"
`

// shoot records the tour over a session that goes on meanwhile, and returns what the screen shows at its end.
func shoot(t *testing.T, script string, outputs ...cast.Output) (stage *Stage, take cast.Take) {
	t.Helper()
	play, err := cast.ParseScript(script, KnownKey)
	if err != nil {
		t.Fatal(err)
	}
	s := live()
	stage = NewStage(Config{Snapshots: s.drain, Profile: theme.TrueColour}, 120, 36)
	begin, i := s.now, 74
	until := func(_ context.Context, at time.Duration) (time.Duration, error) {
		for ; s.now < begin+event.Time(at); i++ {
			s.pass(8, i)
			s.emit(event.Event{Kind: event.KindToken, Req: 8, ID: int32(i), Index: int32(i), N: 1, Step: s.step, Text: " word"})
		}
		return at, nil
	}
	take, err = cast.Shoot(t.Context(), stage, cast.Options{Every: 100 * time.Millisecond, Script: play, Until: until}, outputs...)
	if err != nil {
		t.Fatal(err)
	}
	return stage, take
}

// played is what a player has come to at the end of an asciicast.
type played struct {
	screen vt10x.Terminal
	lasted float64 // s
	marks  []string
	bytes  int // of output
}

// playBack reads an asciicast as a player does.
func playBack(t *testing.T, data []byte) (p played) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	var head struct {
		Version, Width, Height int
		Term                   struct{ Cols, Rows int }
	}
	if err := json.Unmarshal([]byte(lines[0]), &head); err != nil {
		t.Fatal(err)
	}
	p.screen = vt10x.New(vt10x.WithSize(max(head.Width, head.Term.Cols), max(head.Height, head.Term.Rows)))
	for _, line := range lines[1:] {
		var at float64
		var code, data string
		if err := json.Unmarshal([]byte(line), &[]any{&at, &code, &data}); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		switch {
		case head.Version == cast.V3:
			p.lasted += at
		case at < p.lasted:
			t.Fatalf("time goes back to %v", at)
		default:
			p.lasted = at
		}
		switch code {
		case "o":
			p.bytes += len(data)
			if _, err := p.screen.Write([]byte(data)); err != nil {
				t.Fatal(err)
			}
		case "r":
			var w, h int
			if _, err := fmt.Sscanf(data, "%dx%d", &w, &h); err != nil {
				t.Fatal(err)
			}
			p.screen.Resize(w, h)
		case "m":
			p.marks = append(p.marks, data)
		default:
			t.Fatalf("an event of kind %q", code)
		}
	}
	return p
}

// An asciicast that is played back ends with what the screen shows: every character, with its colours and looks. Both versions of the
// format last as long and have the same marks.
func TestCastPlaysBackToTheScreen(t *testing.T) {
	for _, version := range []int{cast.V2, cast.V3} {
		var file bytes.Buffer
		stage, take := shoot(t, tour, cast.NewAsciicast(&file, cast.Header{Version: version, Title: "tour", Wall: time.Unix(1_790_000_000, 0)}))
		got := playBack(t, file.Bytes())
		g, skin := stage.Frame()
		if cols, rows := got.screen.Size(); cols != g.W || rows != g.H || g.W != 130 {
			t.Fatalf("version %d: played on %dx%d, the screen has %dx%d", version, cols, rows, g.W, g.H)
		}
		if text := got.screen.String(); strings.TrimSuffix(text, "\n") != strings.TrimSuffix(g.Plain(), "\n") {
			t.Errorf("version %d shows at the end\n%s\nthe screen is\n%s", version, text, g.Plain())
		}
		whole := vt10x.New(vt10x.WithSize(g.W, g.H))
		if _, err := whole.Write(g.Changes(nil, skin)); err != nil {
			t.Fatal(err)
		}
		for y := range g.H {
			for x := range g.W {
				if a, b := looks(got.screen.Cell(x, y)), looks(whole.Cell(x, y)); a != b {
					t.Fatalf("version %d: cell %d,%d is %+v, on the screen %+v", version, x, y, a, b)
				}
			}
		}
		if !strings.Contains(g.Plain(), "Throughput") || fmt.Sprint(got.marks) != "[smaller]" || !got.screen.CursorVisible() {
			t.Errorf("version %d ends with marks %q and\n%s", version, got.marks, g.Plain())
		}
		if math.Abs(got.lasted-take.Lasted.Seconds()) > 1e-3 || take.Lasted < 5*time.Second {
			t.Errorf("version %d lasts %v s, the recording took %v", version, got.lasted, take.Lasted)
		}
		if whole := len(g.Encode(skin)); got.bytes > take.Frames*whole/3 {
			t.Errorf("version %d has %d bytes in %d frames, of which one alone has %d", version, got.bytes, take.Frames, whole)
		}
	}
}

// looks is what can be seen of a cell: of a space that is neither underlined nor reversed its background.
func looks(c vt10x.Glyph) vt10x.Glyph {
	const reverse, underline = 1, 2 // as the emulator has them
	if c.Char == ' ' && c.Mode&(reverse|underline) == 0 {
		c.FG, c.Mode = 0, 0
	}
	return c
}

// The same session and the same script make the same files, byte for byte.
func TestCastsAreRepeatable(t *testing.T) {
	var files [2][2]bytes.Buffer
	for i := range files {
		shoot(t, tour, cast.NewAsciicast(&files[i][0], cast.Header{Version: cast.V2}), cast.NewFilm(&files[i][1]))
	}
	for k, what := range []string{"asciicast", "film"} {
		if !bytes.Equal(files[0][k].Bytes(), files[1][k].Bytes()) || files[0][k].Len() < 1000 {
			t.Errorf("the %s is not the same twice", what)
		}
	}
}

// A script ends a recording by quitting, and one that waits for what does not come fails by the line of the step.
func TestScriptsEnd(t *testing.T) {
	var file bytes.Buffer
	if _, take := shoot(t, "[[step]]\nkey = \"q\"\n[[step]]\nwait = \"1h\"\n", cast.NewAsciicast(&file, cast.Header{Version: cast.V2})); take.Frames != 1 {
		t.Errorf("q ends after %d frames", take.Frames)
	}
	play, err := cast.ParseScript("[[step]]\nkey = \"2\"\n\n[[step]]\nwait_for = \"no such words\"\nwithin = \"2s\"\n", KnownKey)
	if err != nil {
		t.Fatal(err)
	}
	stage := NewStage(Config{Snapshots: live().drain}, 80, 24)
	until := func(_ context.Context, at time.Duration) (time.Duration, error) { return at, nil }
	_, err = cast.Shoot(t.Context(), stage, cast.Options{Every: time.Second, Script: play, Until: until})
	if err == nil || err.Error() != `script: step 2 (line 4): wait_for: "no such words" was not seen within 2s` {
		t.Errorf("got %v", err)
	}
}

// Keys of the table can be pressed by a script under the same names, but for the one that needs a terminal.
func TestScriptsKnowTheKeys(t *testing.T) {
	for _, b := range bindings {
		for _, key := range b.keys {
			if KnownKey(key) == (b.act == actSuspend) {
				t.Errorf("%q is known to scripts: %v", key, KnownKey(key))
			}
			if got := keyPress(key).String(); got != key && key != "space" {
				t.Errorf("%q is pressed as %q", key, got)
			}
		}
	}
	for _, key := range []string{"", "Enter", "ctrl+", "ctrl+Z", "ab", "\x1b", " ", "\xff"} {
		if KnownKey(key) {
			t.Errorf("%q is known", key)
		}
	}
}

// The demo in docs is what its script does with this screen: the script can be performed, and where the asciicast ends the picture that
// moves stands still.
func TestDemo(t *testing.T) {
	read := func(name string) string {
		data, err := os.ReadFile("../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if _, err := cast.ParseScript(read("demo.toml"), KnownKey); err != nil {
		t.Error(err)
	}
	svg := read("demo.svg")
	if len(svg) > 1_500_000 {
		t.Errorf("the picture has %d bytes, more than a page should load", len(svg))
	}
	screen, words := playBack(t, []byte(read("demo.cast"))).screen.String(), 0
	for _, group := range strings.Split(svg, "<g ")[1:] {
		if head, _, _ := strings.Cut(group, ">"); strings.Contains(head, "hidden") {
			continue
		}
		for _, text := range regexp.MustCompile(`>([^<>]+)</text>`).FindAllStringSubmatch(group, -1) {
			words++
			if want := strings.TrimSpace(html.UnescapeString(text[1])); !strings.Contains(screen, want) {
				t.Errorf("the asciicast does not end with %q, which stands in the picture (made anew by scripts/demo.sh):\n%s", want, screen)
			}
		}
	}
	if words < 50 {
		t.Errorf("the picture has %d words where it stands still", words)
	}
}
