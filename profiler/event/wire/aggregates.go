package wire

import "github.com/llmtop/llmtop/profiler/event"

var aggregatesFields = fields[event.Aggregates]{
	member("interval", counts, func(p *event.Aggregates) *int64 { return &p.Interval }),
	member("void", flags, func(p *event.Aggregates) *bool { return &p.Void }),
	member("running", readings, func(p *event.Aggregates) *event.Reading { return &p.Running }),
	member("waiting", readings, func(p *event.Aggregates) *event.Reading { return &p.Waiting }),
	member("decode", readings, func(p *event.Aggregates) *event.Reading { return &p.Decode }),
	member("prefill", readings, func(p *event.Aggregates) *event.Reading { return &p.Prefill }),
	member("kv_usage", readings, func(p *event.Aggregates) *event.Reading { return &p.KVUsage }),
	member("kv_used", readings, func(p *event.Aggregates) *event.Reading { return &p.KVUsed }),
	member("kv_total", readings, func(p *event.Aggregates) *event.Reading { return &p.KVTotal }),
	member("cache_hits", readings, func(p *event.Aggregates) *event.Reading { return &p.CacheHits }),
	member("finished", readings, func(p *event.Aggregates) *event.Reading { return &p.Finished }),
	member("failed", readings, func(p *event.Aggregates) *event.Reading { return &p.Failed }),
	member("cancelled", readings, func(p *event.Aggregates) *event.Reading { return &p.Cancelled }),
	member("in", readings, func(p *event.Aggregates) *event.Reading { return &p.Prompt }),
	member("cached", readings, func(p *event.Aggregates) *event.Reading { return &p.Cached }),
	member("out", readings, func(p *event.Aggregates) *event.Reading { return &p.Generated }),
	member("at_least", flags, func(p *event.Aggregates) *bool { return &p.AtLeast }),
	list("times", MaxCount, histogramFields, func(p *event.Aggregates) *[]event.Histogram { return &p.Histograms }),
	list("slots", MaxSlots, slotFields, func(p *event.Aggregates) *[]event.Slot { return &p.Slots }),
	list("models", MaxCount, loadedModelFields, func(p *event.Aggregates) *[]event.LoadedModel { return &p.Models }),
	list("sources", MaxCount, endpointFields, func(p *event.Aggregates) *[]event.Endpoint { return &p.Endpoints }),
	member("more", namedReadings, func(p *event.Aggregates) *[]event.NamedReading { return &p.More }),
	member("counts", namedReadings, func(p *event.Aggregates) *[]event.NamedReading { return &p.Counts }),
	list("ratios", MaxCount, ratioFields, func(p *event.Aggregates) *[]event.Ratio { return &p.Ratios }),
	list("adapters", MaxCount, fields[string]{member("name", names, func(p *string) *string { return p })}, func(p *event.Aggregates) *[]string { return &p.Adapters }),
	list("ranks", MaxCount, rankFields, func(p *event.Aggregates) *[]event.Rank { return &p.Ranks }),
	list("expert_ranks", MaxCount, layerRanksFields, func(p *event.Aggregates) *[]event.LayerRanks { return &p.ExpertRanks }),
	{"earlier", appendEarlier, readEarlier},
}

var ratioFields = fields[event.Ratio]{
	member("name", names, func(p *event.Ratio) *string { return &p.Name }),
	member("part", bareReadings, func(p *event.Ratio) *event.Reading { return &p.Part }),
	member("whole", bareReadings, func(p *event.Ratio) *event.Reading { return &p.Whole }),
}

var rankFields = fields[event.Rank]{
	member("name", names, func(p *event.Rank) *string { return &p.Name }),
	member("running", readings, func(p *event.Rank) *event.Reading { return &p.Running }),
	member("waiting", readings, func(p *event.Rank) *event.Reading { return &p.Waiting }),
	member("kv_usage", readings, func(p *event.Rank) *event.Reading { return &p.KVUsage }),
}

var layerRanksFields = fields[event.LayerRanks]{
	member("layer", totals, func(p *event.LayerRanks) *int { return &p.Layer }),
	member("picks", countLists, func(p *event.LayerRanks) *[]uint64 { return &p.Picks }),
}

var earlierFields = fields[event.Earlier]{
	member("finished", readings, func(p *event.Earlier) *event.Reading { return &p.Finished }),
	member("failed", readings, func(p *event.Earlier) *event.Reading { return &p.Failed }),
	member("in", readings, func(p *event.Earlier) *event.Reading { return &p.Prompt }),
	member("cached", readings, func(p *event.Earlier) *event.Reading { return &p.Cached }),
	member("out", readings, func(p *event.Earlier) *event.Reading { return &p.Generated }),
	member("counts", namedReadings, func(p *event.Earlier) *[]event.NamedReading { return &p.Counts }),
	list("times", MaxCount, histogramFields, func(p *event.Earlier) *[]event.Histogram { return &p.Histograms }),
}

func appendEarlier(dst []byte, p *event.Aggregates) []byte {
	if p.Earlier == nil {
		return dst
	}
	return earlierFields.object(key(dst, "earlier"), p.Earlier)
}

func readEarlier(d *Decoder, p *event.Aggregates) {
	p.Earlier = new(event.Earlier)
	earlierFields.read(d, p.Earlier)
}

var slotFields = fields[event.Slot]{
	member("r", requestIDs, func(p *event.Slot) *event.RequestID { return &p.Request }),
	member("model", texts, func(p *event.Slot) *string { return &p.Model }),
	member("slot", sizes, func(p *event.Slot) *int { return &p.Slot }),
	member("in", sizes, func(p *event.Slot) *int { return &p.Prompt }),
	member("done", sizes, func(p *event.Slot) *int { return &p.Processed }),
	member("cached", sizes, func(p *event.Slot) *int { return &p.Cached }),
	member("out", sizes, func(p *event.Slot) *int { return &p.Generated }),
	member("max", sizes, func(p *event.Slot) *int { return &p.Max }),
	member("used", sizes, func(p *event.Slot) *int { return &p.Used }),
	member("context", sizes, func(p *event.Slot) *int { return &p.Context }),
	member("end", ends, func(p *event.Slot) *event.State { return &p.End }),
}

var loadedModelFields = fields[event.LoadedModel]{
	member("name", names, func(p *event.LoadedModel) *string { return &p.Name }),
	member("bytes", counts, func(p *event.LoadedModel) *int64 { return &p.Bytes }),
	member("gpu", counts, func(p *event.LoadedModel) *int64 { return &p.GPU }),
	member("context", sizes, func(p *event.LoadedModel) *int { return &p.Context }),
	member("until", moments, func(p *event.LoadedModel) *event.Time { return &p.Until }),
	member("stays", flags, func(p *event.LoadedModel) *bool { return &p.Stays }),
}

var endpointFields = fields[event.Endpoint]{
	member("name", names, func(p *event.Endpoint) *string { return &p.Name }),
	member("why", texts, func(p *event.Endpoint) *string { return &p.Reason }),
}

// Inconsistent buckets are neither written nor kept: see validBuckets.
var histogramFields = fields[event.Histogram]{
	member("name", names, func(p *event.Histogram) *string { return &p.Name }),
	member("n", unsigned, func(p *event.Histogram) *uint64 { return &p.Count }),
	member("sum", counts, func(p *event.Histogram) *int64 { return &p.Sum }),
	{"le", appendBounds, readBounds},
	{"c", appendBuckets, func(d *Decoder, p *event.Histogram) { p.Counts = d.counts() }},
}

func appendBounds(dst []byte, p *event.Histogram) []byte {
	if !validBuckets(p) {
		return dst
	}
	return appendArray(key(dst, "le"), p.Bounds, appendInt)
}

func readBounds(d *Decoder, p *event.Histogram) {
	p.Bounds = p.Bounds[:0]
	for range d.elements() {
		p.Bounds = append(p.Bounds, d.count())
	}
}

func appendBuckets(dst []byte, p *event.Histogram) []byte {
	if !validBuckets(p) {
		return dst
	}
	return appendUints(key(dst, "c"), p.Counts...)
}

// validBuckets reports whether the buckets of a histogram are consistent.
func validBuckets(t *event.Histogram) bool {
	n := len(t.Bounds)
	for i, b := range t.Bounds {
		if !event.PlausibleCount(b) || i > 0 && b <= t.Bounds[i-1] {
			return false
		}
	}
	return n > 0 && n <= MaxBounds && len(t.Counts) == n+1
}

// namedReadings are an object of readings. The last of duplicate names counts.
var namedReadings = value[[]event.NamedReading]{
	func(dst []byte, name string, list []event.NamedReading) []byte {
		if len(list) == 0 {
			return dst
		}
		dst = append(key(dst, name), '{')
		for _, n := range list[:min(len(list), MaxCount)] {
			if n.OK() && n.Origin <= event.Derived {
				dst = append(appendFloat(append(anyKey(dst, n.Name), '['), n.V, 64), ',')
				dst = append(appendString(dst, n.Origin.String()), ']')
			}
		}
		return append(dst, '}')
	},
	func(d *Decoder) (list []event.NamedReading) {
		for name := range d.names() {
			name := valid(name)
			if r := d.readReading(); r.OK() && len(list) < MaxCount {
				list = append(list, event.NamedReading{Name: name, Reading: r})
			}
		}
		return lastByName(list, func(n event.NamedReading) string { return n.Name })
	},
}

func dropInvalidBuckets(list []event.Histogram) {
	for i := range list {
		if t := &list[i]; !validBuckets(t) {
			t.Bounds, t.Counts = nil, nil
		}
	}
}

func readAggregates(d *Decoder) bool {
	p := new(event.Aggregates)
	d.event.Kind, d.event.Data = event.KindAggregates, p
	aggregatesFields.members(d, p, unknownMember)
	dropInvalidBuckets(p.Histograms)
	if p.Earlier != nil {
		dropInvalidBuckets(p.Earlier.Histograms)
	}
	return d.require(true, "")
}
