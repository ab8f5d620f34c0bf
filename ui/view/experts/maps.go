package experts

import (
	"strconv"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
)

// expertLayout holds the areas of the parts of the view.
type expertLayout struct {
	facts                      int // rows
	maps, cell, budget, tables grid.Area
	shown                      []store.NamedPicks
	columns                    []layerColumn
	side                       int // width of columns
	rows                       int // rows of the map without its head
}

// layout divides the view. The map takes rows first; small screens drop a row of tables below it.
func (v *View) layout(in grid.Area, s *store.Snapshot, f *pane.Frame, maps int) (l expertLayout) {
	const headRow, cell = 1, 2
	fixed, gap := headRow, 0
	if in.H >= 10 {
		l.facts, fixed = 1, fixed+1+cell+1
	}
	if in.H >= 28 {
		gap = 1
	}
	free := max(in.H-fixed-2*gap, 1)
	tables := 0
	switch {
	case in.H >= 50:
		tables = 13
	case in.H >= 28:
		tables = 9
	case in.H >= 18:
		tables = 6
	}
	l.rows = max(free-tables, 1)
	m := v.chooseColumns(s, f, &l, in.W, maps)
	used := l.facts + headRow + min(m.rowCount, l.rows)
	l.maps = in.Sub(0, l.facts, in.W, used-l.facts)
	if l.facts == 0 {
		return l
	}
	l.cell = in.Sub(0, used+gap, in.W, cell)
	l.budget = in.Sub(0, used+gap+cell, in.W, 1)
	used += gap + cell + 1 + gap
	l.tables = in.Sub(0, used, in.W, in.H-used)
	return l
}

// layerColumn is a column of the table beside the map.
type layerColumn struct {
	name  string
	width int
	put   func(a grid.Area, x, y int, v *View, h *store.Hits, l int)
}

// layerColumns are all columns by importance.
var layerColumns = []layerColumn{
	{"entropy", 8, func(a grid.Area, x, y int, _ *View, h *store.Hits, l int) {
		a.Right(x, y, pane.Plain, strconv.FormatFloat(h.Layers[l].Entropy, 'f', 3, 64))
	}},
	{"max/mean", 9, func(a grid.Area, x, y int, _ *View, h *store.Hits, l int) {
		a.Right(x, y, imbalanceStyle(h.Layers[l].MaxMean), metric.Rate(h.Layers[l].MaxMean))
	}},
	{"idle", 5, func(a grid.Area, x, y int, _ *View, h *store.Hits, l int) {
		st := pane.Dim
		if h.Layers[l].Dead > 0 {
			st = pane.Watch
		}
		a.Right(x, y, st, strconv.Itoa(h.Layers[l].Dead))
	}},
	{"hot", 12, func(a grid.Area, x, y int, _ *View, h *store.Hits, l int) {
		putList(a, x, y, pane.Plain, h.Layers[l].Hot)
	}},
	{"drift", 7, func(a grid.Area, x, y int, v *View, _ *store.Hits, l int) {
		if l < len(v.sums.drift) && v.sums.drifted[l] {
			d := v.sums.drift[l]
			a.Right(x, y, driftStyle(d), metric.Percent(d.Moved))
		}
	}},
	{"fit", 6, func(a grid.Area, x, y int, v *View, _ *store.Hits, l int) {
		a.Right(x, y, pane.Plain, strconv.Itoa(v.sums.kept[l]))
	}},
	{"cold", 12, func(a grid.Area, x, y int, _ *View, h *store.Hits, l int) {
		putList(a, x, y, pane.Dim, h.Layers[l].Cold)
	}},
	{"CV", 7, func(a grid.Area, x, y int, _ *View, h *store.Hits, l int) {
		a.Right(x, y, pane.Plain, metric.Rate(h.Layers[l].CV))
	}},
}

// putList writes up to three expert numbers right-aligned at column x.
func putList(a grid.Area, x, y int, st grid.Style, experts []int) {
	for i, e := range experts {
		a.Right(x-4*(len(experts)-1-i), y, st, strconv.Itoa(e))
	}
}

// driftStyle highlights a drift that is more than chance.
func driftStyle(d metric.Drift) grid.Style {
	if d.Significant() {
		return pane.Watch
	}
	return pane.Plain
}

// chooseColumns picks as many layer columns as fit beside the map; none beside several maps.
func (v *View) chooseColumns(s *store.Snapshot, f *pane.Frame, l *expertLayout, w, maps int) expertGrid {
	x := s.Experts
	labels := expertLabels(x)
	room := w - labels
	if maps == 1 && v.By == Undivided {
		least := 3 * x.Experts
		if least > room/2 {
			least = min(2*x.Experts, room/2)
		}
		for _, col := range layerColumns {
			if col.name == "drift" && len(v.sums.drift) == 0 {
				continue
			}
			if room-l.side-col.width-rowName-2 < least {
				break
			}
			l.columns, l.side = append(l.columns, col), l.side+col.width
		}
		if l.side > 0 {
			l.side += rowName + 2
		}
		return fitExpertGrid(f, x, &store.Hits{}, room-l.side, l.rows, 8)
	}
	return fitExpertGrid(f, x, &store.Hits{}, mapWidth(room, maps, x), l.rows, 8)
}

// rowName is the width of the layer name before its columns.
const rowName = 5

// leastMap is the minimum width of one of several maps.
const leastMap = 16

// mapWidth returns the width of each of several maps side by side, two cells apart, as many as fit.
func mapWidth(room, maps int, x *store.Experts) int {
	n := max(min(maps, (room+2)/(min(leastMap, x.Experts)+2)), 1)
	return max((room+2)/n-2, 1)
}

func expertLabels(x *store.Experts) int { return grid.Width("L"+strconv.Itoa(x.Layers-1)) + 1 }

// drawMaps draws the maps that fit from left to right, and the layer table beside a single map.
func (v *View) drawMaps(a grid.Area, s *store.Snapshot, f *pane.Frame, maps []store.NamedPicks, l *expertLayout) (m expertGrid) {
	labels := expertLabels(s.Experts)
	room := a.W - labels - l.side
	w := room
	if v.By != Undivided {
		w = mapWidth(room, len(maps), s.Experts)
	}
	top := 0.0
	for _, p := range maps {
		top = max(top, p.Hits.Max)
	}
	for i, p := range maps {
		x := labels + i*(w+2)
		if x+w > a.W-l.side {
			break
		}
		m = fitExpertGrid(f, s.Experts, p.Hits, w, l.rows, 8)
		m.top = top
		body := a.Sub(x, 1, w, a.H-1)
		if v.By == InMemory {
			m.top = p.Hits.Max // shares of different things
		}
		m.draw(body, f)
		if v.By == InMemory && i > 0 {
			m.markMissing(body, s, f, maps[0].Hits)
		}
		m.cursor(body, f, v)
		m.At = grid.Rect{X: body.X, Y: body.Y, W: min(m.cols, body.W), H: min(m.rowCount, body.H)}
		v.Maps = append(v.Maps, m)
		l.shown = append(l.shown, p)
		if v.By == Undivided {
			m.heads(a.Sub(x, 0, w, 1), v)
			continue
		}
		words := displayName(p.Name)
		if v.By != InMemory {
			words += " " + metric.Count(float64(p.Hits.Tokens))
		}
		a.Elide(x, 0, w, pane.Plain, words, f.Skin.Glyphs.Ellipsis)
	}
	m.names(a.Sub(0, 1, labels, a.H-1), v)
	if len(l.columns) > 0 {
		v.layerTable(a.Sub(labels+m.cols+2, 0, a.W-labels-m.cols-2, a.H), s, f, l, &m)
	}
	return m
}

// heads numbers the columns; the number of the selected expert always shows.
func (m *expertGrid) heads(a grid.Area, v *View) {
	step := 1
	for step*m.cell < 1+max(len(strconv.Itoa(m.e.Experts-1)), 2) {
		step *= 2
	}
	for col := 0; col*m.cell+2 <= m.cols; col += step {
		a.Text(col*m.cell, 0, pane.Dim, strconv.Itoa(col*m.perCol))
	}
	name := strconv.Itoa(v.Expert)
	x := min(v.Expert/m.perCol*m.cell, max(a.W-len(name), 0))
	a.Fill(x-1, 0, len(name)+2, pane.Dim, ' ')
	a.Text(x, 0, grid.Fg(theme.Accent).With(grid.Bold), name)
}

// names labels the layers at the left; the label of the selected layer always shows.
func (m *expertGrid) names(a grid.Area, v *View) {
	step := m.layersPerRow()
	for y := 0; y < min(m.rowCount, a.H); y += m.tall {
		a.Text(0, y, pane.Dim, "L"+strconv.Itoa(y/m.tall*step))
	}
	y := v.Layer / step * m.tall
	a.Fill(0, y, a.W, pane.Dim, ' ')
	a.Text(0, y, grid.Fg(theme.Accent).With(grid.Bold), "L"+strconv.Itoa(v.Layer))
}

// layersPerRow returns how many layers share one row of cells.
func (m *expertGrid) layersPerRow() int {
	if m.half {
		return 2 * m.perRow
	}
	return m.perRow
}

// cursor marks the selected cell.
func (m *expertGrid) cursor(a grid.Area, f *pane.Frame, v *View) {
	row, x := v.Layer/m.perRow, v.Expert/m.perCol*m.cell
	if m.half {
		top, bottom := m.heat(row&^1, v.Expert/m.perCol), m.heat(row|1, v.Expert/m.perCol)
		if row%2 == 0 {
			top = theme.Cursor
		} else {
			bottom = theme.Cursor
		}
		a.Halves(x, row/2, top, bottom, f.Skin.Glyphs)
		return
	}
	w := m.cell
	if w > 2 { // the rest of the cell keeps its heat colour
		w = 1
	}
	for y := row * m.tall; y < (row+1)*m.tall; y++ {
		for i := range w {
			mark := ' '
			if i == 0 && y == row*m.tall {
				mark = f.Skin.Glyphs.Arrow
			}
			st := grid.Style{FG: theme.OnBadge, BG: theme.Cursor, Attr: grid.Bold}
			if !f.Skin.Colour() {
				st = pane.Data.With(grid.Reverse)
			}
			a.Cell(x+i, y, st, mark)
		}
	}
}

// At returns the expert at screen position x, y, the hottest of those that share a cell; ok is false outside the maps.
func (v *View) At(x, y int) (layer, expert int, ok bool) {
	for i := range v.Maps {
		m := &v.Maps[i]
		if !m.At.Has(x, y) {
			continue
		}
		row, col := (y-m.At.Y)/m.tall*m.layersPerRow(), (x-m.At.X)/m.cell*m.perCol
		best := -1.0
		for l := row; l < min(row+m.layersPerRow(), m.e.Layers); l++ {
			for e := col; e < min(col+m.perCol, m.e.Experts); e++ {
				if share := m.shareOf(l, e); share > best {
					best, layer, expert = share, l, e
				}
			}
		}
		return layer, expert, best >= 0
	}
	return 0, 0, false
}

// shareOf returns an expert's share of the picks of its layer.
func (m *expertGrid) shareOf(l, e int) float64 { return shareOf(m.h, m.e.Experts, l, e) }

func shareOf(h *store.Hits, experts, l, e int) float64 {
	if h.Layers[l].Total == 0 {
		return 0
	}
	return float64(h.Counts[l*experts+e]) / float64(h.Layers[l].Total)
}

// layerTable lists the balance of the layers: aligned with the map where each row of the map is one layer, otherwise
// the layers around the selected one.
func (v *View) layerTable(a grid.Area, s *store.Snapshot, f *pane.Frame, l *expertLayout, m *expertGrid) {
	h, step, first := m.h, m.tall, 0
	rows := min(m.e.Layers, (a.H-1)/max(step, 1))
	if m.layersPerRow() > 1 {
		step, rows = 1, min(m.e.Layers, a.H-1)
		first = max(min(v.Layer-rows/2, m.e.Layers-rows), 0)
	}
	x := rowName
	for _, col := range l.columns {
		x += col.width
		a.Right(x, 0, pane.Heading, col.name)
	}
	for i := range rows {
		n, y := first+i, 1+i*step
		st := pane.Dim
		if n == v.Layer {
			st = grid.Fg(theme.Accent).With(grid.Bold)
		}
		a.Text(0, y, st, "L"+strconv.Itoa(n))
		if h.Layers[n].Total == 0 {
			a.Text(rowName, y, pane.Dim, "no pick")
			continue
		}
		x := rowName
		for _, col := range l.columns {
			x += col.width
			col.put(a, x, y, v, h, n)
		}
	}
}
