package chaos

import "time"

const (
	// usual is how long a request takes on a machine that runs the tests of several packages side by side.
	usual = 5 * time.Millisecond

	mostStrain = 10
	probes     = 20
)

// Strain returns how many times slower this machine is than an idle one, from 1 to 10. A chaos test multiplies its
// times with it, session timeouts included. Strain measures request, a request to a server.
func Strain(request func()) float64 {
	start := time.Now()
	for range probes {
		request()
	}
	return min(max(float64(time.Since(start))/float64(probes*usual), 1), mostStrain)
}
