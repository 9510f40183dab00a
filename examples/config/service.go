package main

import (
	"fmt"
	"io"
)

// service goes by its limits.
type service struct {
	limits *limits
	out    io.Writer
}

// show writes the limit that the service goes by now.
func (s service) show(name string) {
	limit, err := s.limits.of(name)
	fmt.Fprintf(s.out, "%s: %d per second, at most %v each\n", name, limit.Rate, limit.Timeout)
	if err != nil {
		fmt.Fprintf(s.out, "  the newest setting is not valid: %v\n", err)
	}
}
