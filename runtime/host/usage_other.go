//go:build !linux

package host

// newUsageReader returns nil: the system does not report what threads wait for.
func newUsageReader(UsageOptions) usageReader { return nil }
