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
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// tour is a script that visits views, sizes, colours and input lines.
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

// shotEvery is the time between two frames of shoot.
const shotEvery = 100 * time.Millisecond

// shoot records a script over a running session and returns the screen at its end.
func shoot(t *testing.T, script string, outputs ...cast.Output) (stage *Headless, lasted time.Duration) {
	t.Helper()
	play, err := cast.ParseScript(script, KnownKey)
	if err != nil {
		t.Fatal(err)
	}
	s := viewtest.Live()
	stage = NewHeadless(Config{Sessions: One(Session{Snapshots: s.Snapshot}), Profile: theme.TrueColour}, 120, 36)
	begin, i := s.Now, 74
	until := func(_ context.Context, at time.Duration) (time.Duration, error) {
		for ; s.Now < begin+event.Time(at); i++ {
			s.Pass(8, i)
			s.Token(8, i, " word")
		}
		return at, nil
	}
	lasted, err = cast.Shoot(t.Context(), stage, cast.Options{Every: shotEvery, Script: play, Until: until}, outputs...)
	if err != nil {
		t.Fatal(err)
	}
	return stage, lasted
}

// playback is the state of a player at the end of an asciicast.
type playback struct {
	screen vt10x.Terminal
	lasted float64 // s
	marks  []string
	bytes  int // of output events
}

// playBack plays an asciicast.
func playBack(t *testing.T, data []byte) (p playback) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	var head struct{ Version, Width, Height int }
	if err := json.Unmarshal([]byte(lines[0]), &head); err != nil || head.Version != 2 {
		t.Fatalf("%v in version %d", err, head.Version)
	}
	p.screen = vt10x.New(vt10x.WithSize(head.Width, head.Height))
	for _, line := range lines[1:] {
		var at float64
		var code, data string
		if err := json.Unmarshal([]byte(line), &[]any{&at, &code, &data}); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if at < p.lasted {
			t.Fatalf("time goes back to %v", at)
		}
		p.lasted = at
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
			t.Fatalf("unknown event code %q", code)
		}
	}
	return p
}

// A played asciicast ends with the frame of the screen: every character, colour and attribute.
func TestCastPlaysBackToTheScreen(t *testing.T) {
	var file bytes.Buffer
	stage, lasted := shoot(t, tour, cast.NewAsciicast(&file, "", time.Time{}))
	got := playBack(t, file.Bytes())
	g, skin := stage.Frame()
	if cols, rows := got.screen.Size(); cols != g.W || rows != g.H || g.W != 130 {
		t.Fatalf("played on %dx%d, the screen has %dx%d", cols, rows, g.W, g.H)
	}
	if text := got.screen.String(); strings.TrimSuffix(text, "\n") != strings.TrimSuffix(g.Plain(), "\n") {
		t.Errorf("it shows at the end\n%s\nthe screen is\n%s", text, g.Plain())
	}
	whole := vt10x.New(vt10x.WithSize(g.W, g.H))
	if _, err := whole.Write(g.Changes(nil, skin)); err != nil {
		t.Fatal(err)
	}
	for y := range g.H {
		for x := range g.W {
			if a, b := visibleLooks(got.screen.Cell(x, y)), visibleLooks(whole.Cell(x, y)); a != b {
				t.Fatalf("cell %d,%d is %+v, on the screen %+v", x, y, a, b)
			}
		}
	}
	if !strings.Contains(g.Plain(), "Throughput") || fmt.Sprint(got.marks) != "[smaller]" || !got.screen.CursorVisible() {
		t.Errorf("it ends with marks %q and\n%s", got.marks, g.Plain())
	}
	if math.Abs(got.lasted-lasted.Seconds()) > 1e-3 || lasted < 5*time.Second {
		t.Errorf("it lasts %v s, the recording took %v", got.lasted, lasted)
	}
	if whole, frames := len(g.Encode(skin)), int(lasted/shotEvery)+1; got.bytes > frames*whole/3 {
		t.Errorf("it has %d bytes in %d frames; a whole frame has %d", got.bytes, frames, whole)
	}
}

// visibleLooks returns the visible attributes of a cell: for a space without underline and reverse only its background.
func visibleLooks(c vt10x.Glyph) vt10x.Glyph {
	const reverse, underline = 1, 2 // mode bits of the emulator
	if c.Char == ' ' && c.Mode&(reverse|underline) == 0 {
		c.FG, c.Mode = 0, 0
	}
	return c
}

// The same session and script make the same files, byte for byte.
func TestCastsAreRepeatable(t *testing.T) {
	var files [2][2]bytes.Buffer
	for i := range files {
		shoot(t, tour, cast.NewAsciicast(&files[i][0], "", time.Time{}), cast.NewFilm(&files[i][1]))
	}
	for k, what := range []string{"asciicast", "film"} {
		if !bytes.Equal(files[0][k].Bytes(), files[1][k].Bytes()) || files[0][k].Len() < 1000 {
			t.Errorf("two runs made different %s files", what)
		}
	}
}

// A script ends a recording by quitting, and fails with the line of a step that waits in vain.
func TestScriptsEnd(t *testing.T) {
	var file bytes.Buffer
	if _, lasted := shoot(t, "[[step]]\nkey = \"q\"\n[[step]]\nwait = \"1h\"\n", cast.NewAsciicast(&file, "", time.Time{})); lasted != 0 {
		t.Errorf("q ends after %v", lasted)
	}
	play, err := cast.ParseScript("[[step]]\nkey = \"2\"\n\n[[step]]\nwait_for = \"no such words\"\nwithin = \"2s\"\n", KnownKey)
	if err != nil {
		t.Fatal(err)
	}
	stage := NewHeadless(Config{Sessions: One(Session{Snapshots: viewtest.Live().Snapshot})}, 80, 24)
	until := func(_ context.Context, at time.Duration) (time.Duration, error) { return at, nil }
	_, err = cast.Shoot(t.Context(), stage, cast.Options{Every: time.Second, Script: play, Until: until})
	if err == nil || err.Error() != `script: step 2 (line 4): wait_for: "no such words" did not appear within 2s` {
		t.Errorf("got %v", err)
	}
}

// A script can press every key of the key table under the same name, except the one that needs a terminal.
func TestScriptsKnowTheKeys(t *testing.T) {
	for _, b := range liveKeys() {
		for _, key := range b.Keys {
			if KnownKey(key) == (b.name() == "suspend") {
				t.Errorf("KnownKey(%q) = %v", key, KnownKey(key))
			}
			if got := keyPress(key).String(); got != key && key != "space" {
				t.Errorf("keyPress(%q) is %q", key, got)
			}
		}
	}
	for _, key := range []string{"", "Enter", "ctrl+", "ctrl+Z", "ab", "\x1b", " ", "\xff"} {
		if KnownKey(key) {
			t.Errorf("KnownKey(%q) = true", key)
		}
	}
}

// The demo in docs matches its script: the script parses, and the final frame of the asciicast matches the visible
// frame of the animated SVG.
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
				t.Errorf("the last frame of the asciicast lacks %q, which the picture shows (run scripts/demo.sh to update it):\n%s", want, screen)
			}
		}
	}
	if words < 50 {
		t.Errorf("the still frame of the picture has %d texts", words)
	}
}
