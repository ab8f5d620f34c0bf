package model

// ticks reads the CPU's time stamp counter: a third of the cost of reading the clock. stopwatch finds out its unit.
//
//go:noescape
func ticks() int64
