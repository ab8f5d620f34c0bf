package pane

import (
	"strconv"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// kernels are the kinds of work inside a layer and how they are drawn.
var kernels = [...]struct {
	name         string
	role         theme.Role
	plain, ascii rune // glyphs of its bar without colour
	dur          func(store.LayerPart) time.Duration
}{
	{"attention", theme.SeriesP50, '█', 'a', func(p store.LayerPart) time.Duration { return p.Attention }},
	{"router", theme.SeriesP99, '░', 'r', func(p store.LayerPart) time.Duration { return p.Router }},
	{"experts", theme.SeriesDecode, '▓', 'e', func(p store.LayerPart) time.Duration { return p.Experts }},
}

func kernelFill(f *Frame, i int, colour rune) rune {
	switch gl := f.Skin.Glyphs; {
	case gl.ASCII:
		return kernels[i].ascii
	case !f.Skin.Colour():
		return kernels[i].plain
	}
	return colour
}

// DrawLayers draws the prompt processing of a request by layer, on the scale of the longest layer.
func DrawLayers(a grid.Area, f *Frame, r *store.Request) {
	l := a.Line(0, 0)
	legend := 1
	for _, k := range kernels {
		legend += len(k.name) + 3
	}
	l.Put(Heading, FirstFitting(a.W-legend, "Prompt of #"+strconv.Itoa(int(r.ID))+" by layer", "Prompt by layer", "By layer")).Gap(1)
	for i, k := range kernels {
		if l.Room() >= len(k.name)+3 {
			l.Gap(1).Rune(grid.Fg(k.role), kernelFill(f, i, f.Skin.Glyphs.Swatch)).Gap(1).Put(Dim, k.name)
		}
	}
	top := time.Duration(1)
	for _, p := range r.Layers {
		top = max(top, p.Attention+p.Router+p.Experts)
	}
	const names, numbers = 5, 10
	bar := a.Sub(names, 1, a.W-names-numbers, a.H-1)
	rows := min(len(r.Layers), bar.H)
	for y, p := range r.Layers[:rows] {
		if y == bar.H-1 && rows < len(r.Layers) {
			a.Text(0, a.H-1, Dim, strconv.Itoa(len(r.Layers)-y)+" more layers")
			return
		}
		var segs []grid.Seg
		sum := time.Duration(0)
		for i, k := range kernels {
			d := k.dur(p)
			sum += d
			segs = append(segs, grid.Seg{Share: float64(d) / float64(top), Role: k.role, Fill: kernelFill(f, i, f.Skin.Glyphs.Bar)})
		}
		a.Text(0, 1+y, Dim, "L"+strconv.Itoa(y))
		bar.Stack(0, y, bar.W, segs, f.Skin.Colour(), f.Skin.Glyphs)
		a.Right(a.W, 1+y, Data, metric.Duration(int64(sum)))
	}
}

// DrawSplit draws the mean time between the kept tokens by part of the forward pass; "other" is the time that the
// engine attributes to no part.
func DrawSplit(a grid.Area, f *Frame, r *store.Request) {
	if a.H < 3 {
		return
	}
	parts, gap, n := MeanSplit(r.Tokens)
	title := "Token time of #" + strconv.Itoa(int(r.ID))
	a.Text(0, 0, Heading, title)
	if n == 0 {
		a.Text(0, 1, Dim, "per-token stages: not reported")
		return
	}
	mean, x := metric.Duration(int64(gap)), grid.Width(title)+2
	for _, words := range [...]string{"mean of " + strconv.Itoa(n) + ": " + mean, mean} {
		if x+grid.Width(words) <= a.W {
			a.Text(x, 0, Dim, words)
			break
		}
	}
	for i := range parts {
		parts[i].Fill = f.Skin.Glyphs.Bar
	}
	DrawTimeParts(a.Sub(0, 1, a.W, a.H-1), parts)
}

// MeanSplit returns the parts of the mean gap between tokens, the mean gap, and the number of tokens.
func MeanSplit(tokens []store.Token) (parts []TimePart, gap time.Duration, n int) {
	var sum [6]uint64
	var gaps uint64
	for i := range tokens {
		if t := &tokens[i]; t.Gap > 0 && t.Split.HasPass() {
			for i, v := range t.Split.Parts() {
				sum[i] += uint64(*v)
			}
			gaps = event.AddCount(gaps, uint64(t.Gap))
			n++
		}
	}
	if n == 0 {
		return nil, 0, 0
	}
	other := gaps
	add := func(name string, role theme.Role, v uint64) {
		other -= min(v, other)
		parts = append(parts, TimePart{Name: name, Dur: time.Duration(v / uint64(n)), Share: metric.Share(float64(v), float64(gaps)), role: role})
	}
	add("embed", theme.PartEmbed, sum[0])
	for i, k := range kernels {
		add(k.name, k.role, sum[1+i])
	}
	add("LM head", theme.PartFirst, sum[4])
	add("sample", theme.PartTokenize, sum[5])
	add("other", theme.PartOther, other)
	return parts, time.Duration(gaps / uint64(n)), n
}
