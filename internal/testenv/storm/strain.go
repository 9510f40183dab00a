package storm

import "time"

const (
	// usual is how long a request takes on a machine that runs the tests of several packages side by side.
	usual = 5 * time.Millisecond

	mostStrain = 10
	probes     = 20
)

// Strain returns how many times slower this machine is than one that has time for the tests, from 1 to 10: by that a
// storm is to be slower, its session timeouts included. It measures request, which asks a server something.
func Strain(request func()) float64 {
	start := time.Now()
	for range probes {
		request()
	}
	return min(max(float64(time.Since(start))/float64(probes*usual), 1), mostStrain)
}
