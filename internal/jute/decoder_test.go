package jute_test

import (
	"errors"
	"math"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/jute"
)

func TestValuesRoundTripThroughTheirBytes(t *testing.T) {
	tests := []struct {
		name string
		b    []byte
		hex  string
		want any
		read func(d *jute.Decoder) any
	}{
		{
			"int", jute.AppendInt32(nil, -2), "fffffffe", int32(-2),
			func(d *jute.Decoder) any { return d.Int32() },
		},
		{
			"least long", jute.AppendInt64(nil, math.MinInt64), "8000000000000000", int64(math.MinInt64),
			func(d *jute.Decoder) any { return d.Int64() },
		},
		{"true", jute.AppendBool(nil, true), "01", true, func(d *jute.Decoder) any { return d.Bool() }},
		{"false", jute.AppendBool(nil, false), "00", false, func(d *jute.Decoder) any { return d.Bool() }},
		{
			"string", jute.AppendString(nil, "äb"), "00000003 c3a462", "äb",
			func(d *jute.Decoder) any { return d.String() },
		},
		{
			"empty string", jute.AppendString(nil, ""), "00000000", "",
			func(d *jute.Decoder) any { return d.String() },
		},
		{
			"buffer", jute.AppendBuffer(nil, []byte{0, 1}), "00000002 0001",
			[]byte{0, 1},
			func(d *jute.Decoder) any { return d.Buffer() },
		},
		{
			"empty buffer", jute.AppendBuffer(nil, []byte{}), "00000000",
			[]byte{},
			func(d *jute.Decoder) any { return d.Buffer() },
		},
		{
			"null buffer", jute.AppendBuffer(nil, nil), "ffffffff", []byte(nil),
			func(d *jute.Decoder) any { return d.Buffer() },
		},
		{
			"strings", jute.AppendStrings(nil, []string{"a", ""}), "00000002 00000001 61 00000000",
			[]string{"a", ""},
			func(d *jute.Decoder) any { return d.Strings() },
		},
		{
			"ACLs", jute.AppendACLs(nil, worldACL), hexWorldACL, worldACL,
			func(d *jute.Decoder) any { return d.ACLs() },
		},
		{
			"stat", jute.AppendStat(nil, &stat), hexStat, stat,
			func(d *jute.Decoder) any {
				var s zk.Stat
				d.Stat(&s)
				return s
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(unhex(tt.hex), tt.b); diff != "" {
				t.Errorf("bytes (-want +got):\n%s", diff)
			}
			d := jute.NewDecoder(tt.b)
			if diff := cmp.Diff(tt.want, tt.read(&d)); diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
			if d.Err() != nil || d.Len() != 0 {
				t.Errorf("%d bytes left, %v", d.Len(), d.Err())
			}
		})
	}
}

func TestNullReadsAsTheZeroValue(t *testing.T) {
	d := jute.NewDecoder(unhex("ffffffff ffffffff ffffffff"))
	if s, v, a := d.String(), d.Strings(), d.ACLs(); s != "" || v != nil || a != nil || d.Err() != nil {
		t.Errorf("got %q, %v, %v, %v", s, v, a, d.Err())
	}
}

func TestAnyByteButZeroIsTrue(t *testing.T) {
	d := jute.NewDecoder([]byte{2})
	if !d.Bool() {
		t.Error("2 is false")
	}
}

func TestDecoderKeepsItsFirstError(t *testing.T) {
	d := jute.NewDecoder(unhex("00000001 fffffff0 00000002 00000003"))
	if got := d.Int32(); got != 1 || d.Err() != nil {
		t.Fatalf("got %d, %v", got, d.Err())
	}
	_ = d.String() // the length is -16
	first := d.Err()
	if !errors.Is(first, jute.ErrMarshalling) {
		t.Fatalf("got %v, want ErrMarshalling", first)
	}
	if got := d.Int32(); got != 0 {
		t.Errorf("read %d after an error", got)
	}
	s := zk.Stat{Version: 1}
	d.Stat(&s)
	if s.Version != 1 {
		t.Errorf("stat written after an error: %+v", s)
	}
	if d.Int64() != 0 || d.Bool() || d.String() != "" {
		t.Error("read a value after an error")
	}
	if d.Buffer() != nil || d.Strings() != nil || d.ACLs() != nil || d.Rest() != nil {
		t.Error("read a list after an error")
	}
	if d.Err() != first || d.Len() != 0 {
		t.Errorf("error became %v, %d bytes left", d.Err(), d.Len())
	}
}

func TestRestTakesWhatIsLeft(t *testing.T) {
	d := jute.NewDecoder(unhex("00000001 0203"))
	d.Int32()
	if got := d.Len(); got != 2 {
		t.Errorf("Len() = %d", got)
	}
	if diff := cmp.Diff(unhex("0203"), d.Rest()); diff != "" {
		t.Errorf("rest (-want +got):\n%s", diff)
	}
	if d.Len() != 0 || d.Err() != nil {
		t.Errorf("%d bytes left, %v", d.Len(), d.Err())
	}
}

func TestNewDecoderDoesNotAllocate(t *testing.T) {
	b := jute.AppendStat(jute.AppendInt32(nil, 1), &stat)
	var s zk.Stat
	if n := testing.AllocsPerRun(100, func() {
		d := jute.NewDecoder(b)
		d.Int32()
		d.Stat(&s)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
