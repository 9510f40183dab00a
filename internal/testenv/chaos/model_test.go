package chaos_test

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/gocurator/curator/internal/testenv/chaos"
)

func TestModels(t *testing.T) {
	type op struct {
		what     any
		from, to int // seconds; to is never if it is 0
	}
	lock := func(token int64) any { return chaos.LockOp{Token: token} }
	unlock := func(token int64) any { return chaos.LockOp{Token: token, Release: true} }
	readWith := func(who int, token int64) any { return chaos.ReadWriteOp{Who: who, Token: token} }
	read := func(who int) any { return readWith(who, int64(who)) }
	endRead := func(who int) any { return chaos.ReadWriteOp{Who: who, Release: true} }
	write := func(who int) any { return chaos.ReadWriteOp{Who: who, Write: true, Token: int64(who)} }
	endWrite := func(who int) any { return chaos.ReadWriteOp{Who: who, Write: true, Release: true} }
	for _, tt := range []struct {
		name  string
		model porcupine.Model
		ops   []op
		want  bool
	}{
		{
			"one after the other", chaos.Lock,
			[]op{{lock(1), 0, 1}, {unlock(1), 2, 3}, {lock(2), 1, 4}, {unlock(2), 5, 6}},
			true,
		},
		{"two at once", chaos.Lock, []op{{lock(1), 0, 1}, {lock(2), 1, 2}, {unlock(1), 3, 4}, {unlock(2), 5, 6}}, false},
		{"a token that is not higher", chaos.Lock, []op{{lock(2), 0, 1}, {unlock(2), 2, 3}, {lock(1), 4, 5}}, false},
		{
			"lost before it is released", chaos.Lock,
			[]op{{lock(1), 0, 1}, {unlock(1), 1, 9}, {lock(2), 2, 3}, {unlock(2), 4, 5}},
			true,
		},
		{"released at some time", chaos.Lock, []op{{lock(1), 0, 1}, {unlock(1), 2, 0}, {lock(2), 2, 3}}, true},

		{
			"readers at once", chaos.ReadWrite,
			[]op{{read(1), 0, 1}, {read(2), 1, 2}, {endRead(1), 3, 4}, {endRead(2), 5, 6}},
			true,
		},
		{"a writer with a reader", chaos.ReadWrite, []op{{read(1), 0, 1}, {write(2), 2, 3}, {endRead(1), 4, 5}}, false},
		{"a reader with a writer", chaos.ReadWrite, []op{{write(1), 0, 1}, {read(2), 2, 3}, {endWrite(1), 4, 5}}, false},
		{"two writers", chaos.ReadWrite, []op{{write(1), 0, 1}, {write(2), 2, 3}, {endWrite(1), 4, 5}}, false},
		{"a writer that reads", chaos.ReadWrite, []op{
			{write(1), 0, 1},
			{read(1), 2, 3},
			{endWrite(1), 4, 5},
			{read(2), 2, 6},
			{endRead(1), 7, 8},
			{endRead(2), 9, 10},
			{write(2), 11, 12},
		}, true},
		{"another writer while the first still reads", chaos.ReadWrite, []op{
			{write(1), 0, 1}, {read(1), 2, 3}, {endWrite(1), 4, 5}, {write(2), 6, 7}, {endRead(1), 8, 9},
		}, false},

		{"a reader after a writer, of a newer token", chaos.ReadWrite, []op{
			{write(1), 0, 1}, {endWrite(1), 2, 3}, {readWith(2, 2), 4, 5},
		}, true},
		{"a reader after a writer, of an older token", chaos.ReadWrite, []op{
			{write(2), 0, 1}, {endWrite(2), 2, 3}, {readWith(1, 1), 4, 5},
		}, false},
		{"a reader of an older token beside the release of a writer", chaos.ReadWrite, []op{
			{write(2), 0, 1}, {endWrite(2), 2, 5}, {readWith(1, 1), 3, 4},
		}, false},
		{"a writer that reads with its own token", chaos.ReadWrite, []op{
			{write(2), 0, 1}, {readWith(2, 2), 2, 3}, {endWrite(2), 4, 5},
		}, true},
		{"a writer of an older token", chaos.ReadWrite, []op{{write(2), 0, 1}, {endWrite(2), 2, 3}, {write(1), 4, 5}}, false},

		{
			"all leases", chaos.Leases(3),
			[]op{{chaos.LeaseOp(2), 0, 1}, {chaos.LeaseOp(1), 1, 2}, {chaos.LeaseOp(-2), 3, 4}, {chaos.LeaseOp(2), 3, 5}},
			true,
		},
		{
			"one too many", chaos.Leases(3),
			[]op{{chaos.LeaseOp(2), 0, 1}, {chaos.LeaseOp(2), 2, 3}, {chaos.LeaseOp(-2), 4, 5}},
			false,
		},
		{"more returned than taken", chaos.Leases(3), []op{{chaos.LeaseOp(1), 0, 1}, {chaos.LeaseOp(-2), 2, 3}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &failing{TB: t}
			var h chaos.History
			for i, op := range tt.ops {
				to := time.Unix(int64(op.to), 0)
				if op.to == 0 {
					to = chaos.Open()
				}
				h.Add(i, op.what, time.Unix(int64(op.from), 0), to)
			}
			h.Check(chaos.New(f), tt.name, tt.model)
			if got := !f.Failed(); got != tt.want {
				t.Errorf("allowed: %t: %q", got, f.errors)
			}
		})
	}
}
