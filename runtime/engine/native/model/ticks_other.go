//go:build !amd64

package model

import "time"

var origin = time.Now()

// ticks returns ns of the monotonic clock.
func ticks() int64 { return int64(time.Since(origin)) }
