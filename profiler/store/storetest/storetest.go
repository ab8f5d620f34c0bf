// Package storetest helps tests that compare snapshots.
package storetest

import (
	"reflect"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/llmtop/llmtop/profiler/store"
)

// options make cmp compare what snapshots say, with unexported fields, not how it is stored.
var options = cmp.Options{
	cmp.Exporter(func(reflect.Type) bool { return true }),
	cmpopts.EquateNaNs(),
	cmp.Transformer("Points", func(t store.Trend) []store.RatePoint { return t.Points(nil) }),
	cmp.FilterPath(func(p cmp.Path) bool { // of router picks: which have been asked for
		f, field := p.Last().(cmp.StructField)
		return field && f.Name() == "summaries"
	}, cmp.Ignore()),
}

// Diff returns the differences of two snapshots, "" without any.
func Diff(want, got *store.Snapshot) string { return cmp.Diff(want, got, options) }
