package model

// ticks reads the processor's time stamp counter: a third of what a look at the clock costs, in a unit that stopwatch finds out.
//
//go:noescape
func ticks() int64
