//go:build race

package eventtest

const underRace = true
