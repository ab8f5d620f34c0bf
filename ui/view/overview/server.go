package overview

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
	"github.com/llmtop/llmtop/ui/view/latency"
)

// drawCacheHits writes the cache hits, with their age if no prompt has come since.
func drawCacheHits(r *pane.RowWriter, s *store.Snapshot) {
	if !s.Aggregates.CacheHitShare().OK() {
		return
	}
	a := r.Next("cache hit")
	n := s.Aggregates.Number(event.RatioCacheHits)
	unit := ""
	if n != nil {
		old := age(n, s)
		unit = pane.FirstFitting(a.W-pane.ValueWidth-1, "of prompt tokens"+old, strings.TrimPrefix(old, ", "), "")
	}
	pane.PutReading(a, s.Aggregates.CacheHitShare(), metric.Percent, unit, pane.Data)
}

// age returns how old a number is, for a text; "" if it is of one of the last polls.
func age(n *store.ServerNumber, s *store.Snapshot) string {
	old := s.Now - n.At
	if old < event.Time(max(3*s.Aggregates.Interval, int64(3*time.Second))) {
		return ""
	}
	return ", " + metric.Duration(int64(old)/1e9*1e9) + " ago"
}

// endPrefix is the prefix of counts of requests by the reason of their end.
const endPrefix = "finished_"

// drawMore lists the other numbers of the engine: values, quotients with their age, and the totals of counts above 0.
func drawMore(r *pane.RowWriter, s *store.Snapshot, f *pane.Frame) {
	ended := ""
	for i := range s.Aggregates.Numbers {
		n := &s.Aggregates.Numbers[i]
		switch reason, isEnd := strings.CutPrefix(n.Name, endPrefix); {
		case isEnd && n.Value.V > 0:
			ended += ", " + sanitize.Line(reason) + " " + metric.Count(n.Value.V)
		case isEnd, !isMore(&s.Aggregates, n):
		case n.Kind == store.CountedTotal:
			moreRow(r, f, n, n.Value, "")
		case n.Kind == store.Quotient || n.At == s.Aggregates.At:
			moreRow(r, f, n, n.Last, age(n, s))
		}
	}
	names := func(label, list string) {
		if list != "" {
			r.Words(f, label, list[2:])
		}
	}
	names("ended", ended)
	adapters := ""
	for _, name := range s.Aggregates.Adapters {
		adapters += ", " + sanitize.Line(name)
	}
	names("LoRA", adapters)
	load := func(label, speed string, k *event.Rank) {
		a, kv := r.Next(label), ", KV "+metric.Reading(k.KVUsage, metric.Percent)
		running, waiting := metric.Reading(k.Running, metric.Count), metric.Reading(k.Waiting, metric.Count)
		a.Elide(1, 0, a.W-1, pane.Plain, pane.FirstFitting(a.W-1, speed+running+" running, "+waiting+" waiting"+kv,
			strings.Replace(speed, " tok/s", "/s", 1)+running+"+"+waiting+" wait"+kv), f.Skin.Glyphs.Ellipsis)
	}
	for i := range s.Aggregates.Ranks {
		k := &s.Aggregates.Ranks[i]
		load("rank "+sanitize.Line(k.Name), "", k)
	}
	for i := range s.Aggregates.ByModel {
		k := &s.Aggregates.ByModel[i]
		r.Words(f, "model", sanitize.Line(k.Name))
		load("", metric.Reading(k.Decode, metric.Rate)+" tok/s, ", k)
	}
}

// mostRanks is how many ranks of experts are listed.
const mostRanks = 8

// drawRankLoad lists the ranks that experts are spread over with their share of the picks of the last ten seconds.
func drawRankLoad(r *pane.RowWriter, s *store.Snapshot, f *pane.Frame) {
	load := s.Aggregates.RankLoad
	if load == nil {
		return
	}
	imbalance := load.Imbalance(load.Recent)
	pane.PutReading(r.Next("experts"), imbalance, metric.Rate, f.Skin.Glyphs.Times+" the mean rank", pane.Data)
	if !imbalance.OK() {
		return
	}
	for rank := range min(load.Ranks, mostRanks) {
		share, layer, most := load.OfRank(load.Recent, rank)
		r.Words(f, "EP rank "+strconv.Itoa(rank), metric.Percent(share)+" of picks, L"+strconv.Itoa(layer)+" "+metric.Rate(most)+f.Skin.Glyphs.Times)
	}
}

// isMore reports whether a number has no place of its own on the screen, and is worth a row: of counts those above 0.
func isMore(r *store.Aggregates, n *store.ServerNumber) bool {
	switch {
	case n.Name == event.RatioCacheHits, strings.HasPrefix(n.Name, latency.StartupPrefix): // startup: shown by drawStartup
		return false
	case n.Kind == store.CurrentValue:
		return slices.ContainsFunc(r.More, func(m event.NamedReading) bool { return m.Name == n.Name })
	}
	return n.Kind == store.Quotient || n.Value.V > 0
}

// moreRow writes a number without a label; a long name takes the room of the label.
func moreRow(r *pane.RowWriter, f *pane.Frame, n *store.ServerNumber, v event.Reading, note string) {
	a := r.Next("")
	name, format := metric.Named(sanitize.Line(n.Name))
	l := a.Line(1, 0)
	if value := format(v.V); a.W > 0 && l.Room() < grid.Width(value+" "+name+note) {
		a = r.A.Sub(0, r.Y-1, r.A.W, 1)
		l = a.Line(0, 0)
	}
	l.Put(pane.Data, format(v.V)).Gap(1)
	a.Elide(l.X, 0, l.Room(), pane.Dim, name+note, f.Skin.Glyphs.Ellipsis)
}
