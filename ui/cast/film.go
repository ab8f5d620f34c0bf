package cast

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// filmEvery is the time between two frames of a film: fewer than of an asciicast, since each is as large as what changes in it.
const filmEvery = 500 * time.Millisecond

// Film writes frames as one SVG that moves by itself: by CSS alone, so that it can be an image of a page. It refers to nothing outside
// and runs nothing. What a viewer shows that does not move is the last frame.
//
// A piece of the screen is in it once, however often it is seen, with the times at which it is; pieces with the same times are a group.
type Film struct {
	out    io.Writer
	w, h   int // of the largest frame
	theme  *theme.Palette
	seen   map[string]*piece
	order  []*piece // as they were first seen
	frames []time.Duration
	rest   struct { // the newest frame that was left out; it is in the film if it is the last
		at   time.Duration
		grid grid.Grid
		skin *theme.Skin // nil: none was
	}
}

// piece is a part of the screen with the frames in which it is seen.
type piece struct {
	svg   string
	spans []span
}

// span is a range of frames; the last is not in it.
type span struct{ from, to int }

// NewFilm makes an output to w, which stays the caller's to close. Everything is written at the end.
func NewFilm(w io.Writer) *Film { return &Film{out: w, seen: map[string]*piece{}} }

// Frame implements Output.
func (f *Film) Frame(at time.Duration, g *grid.Grid, skin *theme.Skin) error {
	if n := len(f.frames); n > 0 && at/filmEvery == f.frames[n-1]/filmEvery {
		f.rest.at, f.rest.skin = at, skin
		f.rest.grid.Copy(g)
		return nil
	}
	f.rest.skin = nil
	f.add(at, g, skin)
	return nil
}

// add adds a frame.
func (f *Film) add(at time.Duration, g *grid.Grid, skin *theme.Skin) {
	if f.theme == nil {
		f.theme = skin.Palette
	}
	f.w, f.h = max(f.w, g.W), max(f.h, g.H)
	n := len(f.frames)
	f.frames = append(f.frames, at)
	for _, svg := range g.Pieces(skin.Palette) {
		p := f.seen[svg]
		if p == nil {
			p = &piece{svg: svg}
			f.seen[svg] = p
			f.order = append(f.order, p)
		}
		if k := len(p.spans); k > 0 && p.spans[k-1].to == n {
			p.spans[k-1].to = n + 1
		} else {
			p.spans = append(p.spans, span{n, n + 1})
		}
	}
}

// Mark implements Output: a film has no marks.
func (f *Film) Mark(time.Duration, string) error { return nil }

// group are pieces that are seen at the same times.
type group struct {
	spans  []span
	pieces []*piece
}

// groups are the pieces by their times, in the order in which they were first seen.
func (f *Film) groups() (all []*group) {
	by := map[string]*group{}
	for _, p := range f.order {
		key := fmt.Sprint(p.spans)
		g := by[key]
		if g == nil {
			g = &group{spans: p.spans}
			by[key] = g
			all = append(all, g)
		}
		g.pieces = append(g.pieces, p)
	}
	return all
}

// Close implements Output.
func (f *Film) Close(at time.Duration) error {
	if len(f.frames) == 0 {
		return nil
	}
	if f.rest.skin != nil {
		f.add(f.rest.at, &f.rest.grid, f.rest.skin)
	}
	out := bufio.NewWriter(f.out)
	out.WriteString(grid.SVGHead(f.w, f.h, f.theme)) // a writer keeps its error for Flush
	lasts := max(at, f.frames[len(f.frames)-1]+filmEvery)
	all := f.groups()
	fmt.Fprintf(out, "<style>@media (prefers-reduced-motion: no-preference) {\ng { animation: %.2fs step-end infinite }\n", lasts.Seconds())
	for i, g := range all {
		if frames := f.keyframes(g.spans, lasts); frames != "" {
			fmt.Fprintf(out, "@keyframes k%d {%s}\n.k%d { animation-name: k%d }\n", i, frames, i, i)
		}
	}
	out.WriteString("}</style>\n")
	for i, g := range all {
		still := ""
		if g.spans[len(g.spans)-1].to < len(f.frames) { // it is not in the last frame
			still = ` visibility="hidden"`
		}
		fmt.Fprintf(out, `<g class="k%d"%s>`+"\n", i, still)
		for _, p := range g.pieces {
			out.WriteString(p.svg)
		}
		out.WriteString("</g>\n")
	}
	out.WriteString("</svg>\n")
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write film: %w", err)
	}
	return nil
}

// keyframes say when a group is seen, "" if it always is.
func (f *Film) keyframes(spans []span, lasts time.Duration) string {
	if len(spans) == 1 && spans[0] == (span{0, len(f.frames)}) {
		return ""
	}
	var out strings.Builder
	if spans[0].from > 0 {
		out.WriteString("0%{visibility:hidden}")
	}
	for _, s := range spans {
		fmt.Fprintf(&out, "%s{visibility:visible}", f.share(s.from, lasts))
		if s.to < len(f.frames) {
			fmt.Fprintf(&out, "%s{visibility:hidden}", f.share(s.to, lasts))
		}
	}
	return out.String()
}

// share is where a frame begins.
func (f *Film) share(frame int, lasts time.Duration) string {
	return fmt.Sprintf("%.3f%%", 100*float64(f.frames[frame]-f.frames[0])/float64(lasts))
}
