package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/metric"
)

// chart is a drawing in pixels: boxes and labels, which the page draws as SVG.
type chart struct {
	Title, Note   string
	Wide          bool // as wide as the page
	Width, Height float64
	Key           [][2]string // classes of colours and their names
	Axis          float64     // y of the axis below; 0: none
	Boxes         []mark      // Text is the hint
	Labels        []mark
}

// mark is a box or a label, drawn in the colour of Class, or else in Fill.
type mark struct {
	Class, Fill, Anchor, Text string
	X, Y, W, H                float64
}

// Sizes of charts, in pixels.
const (
	chartWidth = 520
	nameWidth  = 150 // of the label to the left of a bar
	valueSpace = 110 // of the value to its right
	barHeight  = 18
	rowHeight  = 26
)

// allCharts returns the charts that have data.
func allCharts(r *Report) []chart {
	var out []chart
	all := []chart{timelineChart(r), seriesChart(r), slowestChart(r), tokensChart(r), partsChart(r), gapsChart(r), outputChart(r), expertsChart(r), r.Fleet.ttftChart()}
	for _, c := range append(all, latencyCharts(r)...) {
		if len(c.Boxes) > 0 {
			out = append(out, c)
		}
	}
	return out
}

func (c *chart) text(class, anchor string, x, y float64, words string) {
	c.Labels = append(c.Labels, mark{Class: class, Anchor: anchor, Text: clean.Line(words), X: x, Y: y})
}

// bar adds a row with a bar of the given share of the full length.
func (c *chart) bar(name string, share float64, value string) (right float64) {
	y := c.Height
	length := max(share, 0) * (chartWidth - nameWidth - valueSpace)
	c.text("", "end", nameWidth-8, y+barHeight-5, name)
	c.Boxes = append(c.Boxes, mark{Class: "bar", Text: clean.Line(name + ": " + value), X: nameWidth, Y: y, W: length, H: barHeight})
	c.text("value", "start", nameWidth+length+6, y+barHeight-5, value)
	c.Height += rowHeight
	return nameWidth + length
}

// partsChart draws the TTFT components.
func partsChart(r *Report) chart {
	means, note := ttftParts(r)
	c := chart{Title: "Where TTFT goes", Note: cmp.Or(note, "mean of warm requests"), Width: chartWidth}
	_, longest := means.total()
	for _, p := range means {
		if longest.Time.V > 0 {
			c.bar(p.Name, p.Time.V/longest.Time.V, metric.Seconds(p.Time.V))
		}
	}
	return c
}

// outputChart compares the points of a benchmark.
func outputChart(r *Report) chart {
	c := chart{Title: "Output tokens/s", Note: "mean of runs", Width: chartWidth}
	if r.Bench == nil {
		return c
	}
	most := 0.0
	for i := range r.Bench.Points {
		if out := r.Bench.Points[i].Output; out != nil {
			most = max(most, out.Mean.V)
		}
	}
	for i := range r.Bench.Points {
		p := &r.Bench.Points[i]
		if p.Output != nil && most > 0 {
			c.bar(p.Name, p.Output.Mean.V/most, p.Output.margin(metric.Rate))
		}
	}
	return c
}

// gapBins is the number of bins per factor of two in the chart of token gaps.
const gapBins = 4

// gapsChart draws a histogram of all gaps between tokens on a logarithmic axis.
func gapsChart(r *Report) chart {
	c := chart{Title: "Gaps between tokens", Note: "logarithmic axis", Width: chartWidth}
	counts, total := map[int]int{}, 0
	for i := range r.Requests {
		for _, t := range r.Requests[i].Tokens {
			if v, ok := t.Gap.Positive(); ok {
				counts[int(math.Floor(math.Log2(v)*gapBins))] += int(max(t.N, 1))
				total += int(max(t.N, 1))
			}
		}
	}
	if total == 0 {
		return c
	}
	bins := make([]int, 0, len(counts))
	most := 0
	for bin, n := range counts {
		bins, most = append(bins, bin), max(most, n)
	}
	slices.Sort(bins)
	first, last := bins[0], bins[len(bins)-1]
	const height, base = 150.0, 165.0
	width := (chartWidth - 20) / float64(last-first+1)
	c.Height, c.Axis = base+20, base
	edge := func(bin int) float64 { return math.Exp2(float64(bin) / gapBins) }
	for _, bin := range bins {
		h := height * float64(counts[bin]) / float64(most)
		c.Boxes = append(c.Boxes, mark{
			Class: "bar", X: 10 + float64(bin-first)*width, Y: base - h, W: math.Max(width-1, 0.5), H: h,
			Text: fmt.Sprintf("%s to %s: %d of %d", metric.Seconds(edge(bin)), metric.Seconds(edge(bin+1)), counts[bin], total),
		})
	}
	c.text("", "start", 10, base+15, metric.Seconds(edge(first)))
	c.text("", "end", chartWidth-10, base+15, metric.Seconds(edge(last+1)))
	return c
}

// numberWidth is the least width of an expert's box with its share in percent.
const numberWidth = 20

// expertsChart draws the share of each expert in the picks of its layer.
func expertsChart(r *Report) chart {
	c := chart{Title: "Experts while decoding", Note: "share of a layer's picks in %; darkest: twice the uniform share", Width: chartWidth}
	if r.Experts == nil || r.Experts.Decode.Tokens == 0 {
		return c
	}
	layers := r.Experts.Decode.Layers
	const left, top = 30.0, 4.0
	width, height := (chartWidth-left)/float64(max(r.Experts.Experts, 1)), 14.0
	for l, row := range layers {
		total := uint64(0)
		for _, n := range row {
			total += n
		}
		y := top + float64(l)*height
		c.text("", "end", left-6, y+height-3, fmt.Sprint(l))
		for e, n := range row {
			share := float64(n) / float64(max(total, 1))
			depth := min(share*float64(len(row))/2, 1) // the middle of the scale is the uniform share
			c.Boxes = append(c.Boxes, mark{
				Fill: fmt.Sprintf("rgba(47,111,235,%.2f)", depth), X: left + float64(e)*width, Y: y, W: math.Max(width-1, 0.5), H: height - 1,
				Text: fmt.Sprintf("layer %d, expert %d: %s, %d picks", l, e, metric.Percent(share), n),
			})
			if width >= numberWidth {
				c.text("number", "middle", left+(float64(e)+0.5)*width, y+height-4, fmt.Sprintf("%.0f", 100*share))
			}
		}
	}
	c.Height = top + float64(len(layers))*height + 4
	return c
}
