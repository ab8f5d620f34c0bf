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

// filmInterval is the time between two frames of a film. It is longer than that of an asciicast, because each frame
// adds all its changes to the file.
const filmInterval = 500 * time.Millisecond

// Film writes frames as one animated SVG. The animation is CSS only, so the file works as an image on a page; it has no
// scripts and no external references. Viewers without animation show the last frame.
//
// Each distinct piece of the screen is stored once, with the times at which it is visible. Pieces with the same times
// form a group.
type Film struct {
	out     io.Writer
	w, h    int // size of the largest frame
	theme   *theme.Palette
	pieces  map[string]*piece
	order   []*piece // in order of first appearance
	frames  []time.Duration
	skipped struct { // newest skipped frame; Close adds it
		at   time.Duration
		grid grid.Grid
		skin *theme.Skin // nil: none
	}
}

// piece is a part of the screen with the frames in which it is visible.
type piece struct {
	svg   string
	spans [][2]int // ranges of frames, without their ends
}

// NewFilm returns an output to w. It does not close w, and writes everything in Close.
func NewFilm(w io.Writer) *Film { return &Film{out: w, pieces: map[string]*piece{}} }

// Frame implements Output.
func (f *Film) Frame(at time.Duration, g *grid.Grid, skin *theme.Skin) error {
	if n := len(f.frames); n > 0 && at/filmInterval == f.frames[n-1]/filmInterval {
		f.skipped.at, f.skipped.skin = at, skin
		f.skipped.grid.Copy(g)
		return nil
	}
	f.skipped.skin = nil
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
		p := f.pieces[svg]
		if p == nil {
			p = &piece{svg: svg}
			f.pieces[svg] = p
			f.order = append(f.order, p)
		}
		if k := len(p.spans); k > 0 && p.spans[k-1][1] == n {
			p.spans[k-1][1] = n + 1
		} else {
			p.spans = append(p.spans, [2]int{n, n + 1})
		}
	}
}

// Mark implements Output. A film has no marks.
func (f *Film) Mark(time.Duration, string) error { return nil }

// group is a set of pieces that are visible at the same times.
type group struct {
	spans  [][2]int
	pieces []*piece
}

// groups returns the pieces grouped by their times, in order of first appearance.
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
	if f.skipped.skin != nil {
		f.add(f.skipped.at, &f.skipped.grid, f.skipped.skin)
	}
	out := bufio.NewWriter(f.out)
	out.WriteString(grid.SVGHead(f.w, f.h, f.theme)) // Flush returns the first write error
	lasts := max(at, f.frames[len(f.frames)-1]+filmInterval)
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
		if g.spans[len(g.spans)-1][1] < len(f.frames) { // not in the last frame
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

// keyframes returns the CSS keyframes of a group, "" if it is always visible.
func (f *Film) keyframes(spans [][2]int, lasts time.Duration) string {
	if len(spans) == 1 && spans[0] == [2]int{0, len(f.frames)} {
		return ""
	}
	var out strings.Builder
	if spans[0][0] > 0 {
		out.WriteString("0%{visibility:hidden}")
	}
	for _, s := range spans {
		fmt.Fprintf(&out, "%s{visibility:visible}", f.share(s[0], lasts))
		if s[1] < len(f.frames) {
			fmt.Fprintf(&out, "%s{visibility:hidden}", f.share(s[1], lasts))
		}
	}
	return out.String()
}

// share returns the start of a frame as a percentage of the film.
func (f *Film) share(frame int, lasts time.Duration) string {
	return fmt.Sprintf("%.3f%%", 100*float64(f.frames[frame]-f.frames[0])/float64(lasts))
}
