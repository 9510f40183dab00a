package testenv

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// versionsVariable names the environment variable with the versions of a run, as "zookeeper=3.9.3 curator=5.7.1". make
// test-versions sets it, and a run on others fails.
const versionsVariable = "CURATOR_EXPECT_VERSIONS"

// The names of the software in versionsVariable.
const (
	ZooKeeper = "zookeeper"
	Curator   = "curator"
)

// ExpectedVersion returns the expected version of the software, or "" if any will do.
func ExpectedVersion(software string) string {
	for pair := range strings.FieldsSeq(os.Getenv(versionsVariable)) {
		if name, version, _ := strings.Cut(pair, "="); name == software {
			return version
		}
	}
	return ""
}

// Version is a release of some software: major, minor and patch.
type Version [3]int

// String writes the version as in "3.8.0".
func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2]) }

// AtLeast reports whether v is other or newer.
func (v Version) AtLeast(other Version) bool {
	for i := range v {
		if v[i] != other[i] {
			return v[i] > other[i]
		}
	}
	return true
}

var versionNumbers = regexp.MustCompile(`(\d+)\.(\d+)\.(\d+)`)

// ParseVersion returns the first version in a text.
func ParseVersion(text string) (v Version, err error) {
	numbers := versionNumbers.FindStringSubmatch(text)
	if numbers == nil {
		return v, fmt.Errorf("no version in %q", text)
	}
	for i := range v {
		if v[i], err = strconv.Atoi(numbers[i+1]); err != nil {
			return v, err
		}
	}
	return v, nil
}

// VersionOf returns the version that a server reports.
func VersionOf(tb testing.TB, server Instance) Version {
	tb.Helper()
	v, err := askVersion(server)
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

func askVersion(server Instance) (v Version, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	answer, err := server.FourLetterWord(ctx, "srvr")
	if err != nil {
		return v, err
	}
	return ParseVersion(answer)
}

// checkVersion returns an error if the server has another version than the expected one.
func checkVersion(server Instance) error {
	want := ExpectedVersion(ZooKeeper)
	if want == "" {
		return nil
	}
	got, err := askVersion(server)
	if err != nil {
		return err
	}
	if got.String() != want {
		return fmt.Errorf("the server is Apache ZooKeeper %v, but %s=%q", got, versionsVariable, os.Getenv(versionsVariable))
	}
	return nil
}
