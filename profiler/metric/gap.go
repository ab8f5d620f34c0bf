package metric

// TokenGap returns the gap before each of n tokens that share a stamp: they divide equally the time since the previous
// token, without pacing. paced is the pacing emitted since that token; within is the part of it that fits into since.
// All times are in ns.
func TokenGap(since, paced int64, n int) (gap, within int64) {
	within = min(paced, since)
	return (since - within) / int64(n), within
}
