package storm_test

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/gocurator/curator/internal/testenv/storm"
)

func TestModels(t *testing.T) {
	type op struct {
		what     any
		from, to int // seconds; to is never if it is 0
	}
	lock := func(token int64) any { return storm.LockOp{Token: token} }
	unlock := func(token int64) any { return storm.LockOp{Token: token, Release: true} }
	readWith := func(who int, token int64) any { return storm.ReadWriteOp{Who: who, Token: token} }
	read := func(who int) any { return readWith(who, int64(who)) }
	endRead := func(who int) any { return storm.ReadWriteOp{Who: who, Release: true} }
	write := func(who int) any { return storm.ReadWriteOp{Who: who, Write: true, Token: int64(who)} }
	endWrite := func(who int) any { return storm.ReadWriteOp{Who: who, Write: true, Release: true} }
	for _, tt := range []struct {
		name  string
		model porcupine.Model
		ops   []op
		want  bool
	}{
		{
			"one after the other", storm.Lock,
			[]op{{lock(1), 0, 1}, {unlock(1), 2, 3}, {lock(2), 1, 4}, {unlock(2), 5, 6}},
			true,
		},
		{"two at once", storm.Lock, []op{{lock(1), 0, 1}, {lock(2), 1, 2}, {unlock(1), 3, 4}, {unlock(2), 5, 6}}, false},
		{"a token that is not higher", storm.Lock, []op{{lock(2), 0, 1}, {unlock(2), 2, 3}, {lock(1), 4, 5}}, false},
		{
			"lost before it is released", storm.Lock,
			[]op{{lock(1), 0, 1}, {unlock(1), 1, 9}, {lock(2), 2, 3}, {unlock(2), 4, 5}},
			true,
		},
		{"released at some time", storm.Lock, []op{{lock(1), 0, 1}, {unlock(1), 2, 0}, {lock(2), 2, 3}}, true},

		{
			"readers at once", storm.ReadWrite,
			[]op{{read(1), 0, 1}, {read(2), 1, 2}, {endRead(1), 3, 4}, {endRead(2), 5, 6}},
			true,
		},
		{"a writer with a reader", storm.ReadWrite, []op{{read(1), 0, 1}, {write(2), 2, 3}, {endRead(1), 4, 5}}, false},
		{"a reader with a writer", storm.ReadWrite, []op{{write(1), 0, 1}, {read(2), 2, 3}, {endWrite(1), 4, 5}}, false},
		{"two writers", storm.ReadWrite, []op{{write(1), 0, 1}, {write(2), 2, 3}, {endWrite(1), 4, 5}}, false},
		{"a writer that reads", storm.ReadWrite, []op{
			{write(1), 0, 1},
			{read(1), 2, 3},
			{endWrite(1), 4, 5},
			{read(2), 2, 6},
			{endRead(1), 7, 8},
			{endRead(2), 9, 10},
			{write(2), 11, 12},
		}, true},
		{"another writer while the first still reads", storm.ReadWrite, []op{
			{write(1), 0, 1}, {read(1), 2, 3}, {endWrite(1), 4, 5}, {write(2), 6, 7}, {endRead(1), 8, 9},
		}, false},

		{"a reader after a writer, of a newer token", storm.ReadWrite, []op{
			{write(1), 0, 1}, {endWrite(1), 2, 3}, {readWith(2, 2), 4, 5},
		}, true},
		{"a reader after a writer, of an older token", storm.ReadWrite, []op{
			{write(2), 0, 1}, {endWrite(2), 2, 3}, {readWith(1, 1), 4, 5},
		}, false},
		{"a reader of an older token beside the release of a writer", storm.ReadWrite, []op{
			{write(2), 0, 1}, {endWrite(2), 2, 5}, {readWith(1, 1), 3, 4},
		}, false},
		{"a writer that reads with its own token", storm.ReadWrite, []op{
			{write(2), 0, 1}, {readWith(2, 2), 2, 3}, {endWrite(2), 4, 5},
		}, true},
		{"a writer of an older token", storm.ReadWrite, []op{{write(2), 0, 1}, {endWrite(2), 2, 3}, {write(1), 4, 5}}, false},

		{
			"all leases", storm.Leases(3),
			[]op{{storm.LeaseOp(2), 0, 1}, {storm.LeaseOp(1), 1, 2}, {storm.LeaseOp(-2), 3, 4}, {storm.LeaseOp(2), 3, 5}},
			true,
		},
		{
			"one too many", storm.Leases(3),
			[]op{{storm.LeaseOp(2), 0, 1}, {storm.LeaseOp(2), 2, 3}, {storm.LeaseOp(-2), 4, 5}},
			false,
		},
		{"more returned than taken", storm.Leases(3), []op{{storm.LeaseOp(1), 0, 1}, {storm.LeaseOp(-2), 2, 3}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &failing{TB: t}
			var h storm.History
			for i, op := range tt.ops {
				to := time.Unix(int64(op.to), 0)
				if op.to == 0 {
					to = storm.Open()
				}
				h.Add(i, op.what, time.Unix(int64(op.from), 0), to)
			}
			h.Check(storm.New(f), tt.name, tt.model)
			if got := !f.Failed(); got != tt.want {
				t.Errorf("allowed: %t: %q", got, f.errors)
			}
		})
	}
}
