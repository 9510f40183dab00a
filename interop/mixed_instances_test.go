package interop_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/interop"
)

// instanceTable returns the rows of a table of package discovery, whose tests hold Go to it.
func instanceTable(t *testing.T, name string) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile("../discovery/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
		}
	}
	return rows
}

// bytes calls a command that gives bytes.
func (j *peer) bytes(cmd string, args interop.Args) string {
	j.t.Helper()
	data, err := hex.DecodeString(j.text(cmd, args))
	if err != nil {
		j.t.Fatal(err)
	}
	return string(data)
}

func TestJavaWritesInstancesAsTheTableSays(t *testing.T) {
	t.Parallel()
	j := startJava(t)
	for _, row := range instanceTable(t, "java-writes.txt") {
		label, enabled := strings.CutSuffix(row[0], ", enabled")
		if got := j.bytes("instanceWrite", interop.Args{"label": label, "enabledMember": enabled}); got != row[1] {
			t.Errorf("%s:\n%s, want\n%s", row[0], got, row[1])
		}
	}
}

func TestJavaReadsInstancesAsTheTableSays(t *testing.T) {
	t.Parallel()
	j := startJava(t)
	for _, row := range instanceTable(t, "java-reads.txt") {
		var got, want map[string]any
		err := j.Call(j.ctx, "instanceRead", interop.Args{"class": row[0], "data": hexOf(row[1])}, &got)
		if row[2] == "error" {
			if err == nil {
				t.Errorf("%s %s is %v", row[0], row[1], got)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s %s: %v", row[0], row[1], err)
			continue
		}
		if err := json.Unmarshal([]byte(row[2]), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s %s: (-want +got)\n%s", row[0], row[1], diff)
		}
	}
}

// goInstance is an instance that Go writes, as the payload class that Java reads it with.
type goInstance struct {
	name, class string
	data        string
	err         error
}

func written[T any](
	name, class string, payload T, change func(*discovery.ServiceInstance[T]), opts ...discovery.SerializerOption,
) goInstance {
	i := discovery.NewServiceInstance[T]("orders", "10.0.0.1", 8080)
	i.Payload = payload
	if change != nil {
		change(&i)
	}
	s, err := discovery.NewInstanceSerializer[T](append(opts, discovery.WithEnabledMember())...)
	if err != nil {
		return goInstance{name: name, err: err}
	}
	data, err := s.Encode(i)
	return goInstance{name, class, string(data), err}
}

func ofPayload[T any](class string, payload T, opts ...discovery.SerializerOption) goInstance {
	return written(fmt.Sprintf("%T %v", payload, payload), class, payload, nil, opts...)
}

// ofClass returns an instance with a payload of a class that Go would not choose.
func ofClass[T any](class string, payload T) goInstance {
	return ofPayload(class, payload, discovery.WithPayloadClass(class))
}

type instanceInner struct {
	N int      `json:"n"`
	S *string  `json:"s"`
	L []string `json:"l"`
}

type instanceMeta struct {
	Zone   string         `json:"zone"`
	Weight int            `json:"weight"`
	Inner  *instanceInner `json:"inner"`
	M      map[string]any `json:"m"`
	D      float64        `json:"d"`
	F      float32        `json:"f"`
	Big    int64          `json:"big"`
	Raw    []byte         `json:"raw"`
	When   *int64         `json:"when"`
	C      string         `json:"c"`
	OK     bool           `json:"ok"`
}

// Java reads all that Go writes, and writes the same bytes.
func TestJavaReadsInstancesOfGo(t *testing.T) {
	t.Parallel()
	j := startJava(t)
	var everything strings.Builder
	for r := rune(0); r < 0x3000; r += 1 + r/256 {
		everything.WriteRune(r)
	}
	everything.WriteString("\uffff\U00010000\U0010ffff\u2028\u2029")
	const most = 1<<59 - 1 // Debian's Jackson does not read more digits
	now := int64(1_700_000_000_000)
	type none = struct{}
	list := []goInstance{
		written("nothing", "java.lang.Void", none{}, func(i *discovery.ServiceInstance[none]) {
			*i = discovery.ServiceInstance[none]{}
		}),
		written("everything", "java.lang.Void", none{}, func(i *discovery.ServiceInstance[none]) {
			i.Name, i.ID, i.Address, i.Port, i.SSLPort = everything.String(), "\x00", "::1", 1, math.MaxInt32
			i.Type, i.Disabled, i.RegistrationTime = discovery.DynamicSequential, true, time.UnixMilli(-1)
			i.URISpec = discovery.MustParseURISpec("{scheme}://{[}{address}{]}:{ }{port}/ä😀\n")
		}),
		written("static", "java.lang.Void", none{}, func(i *discovery.ServiceInstance[none]) { i.Type = discovery.Static }),
		written("permanent", "java.lang.Void", none{}, func(i *discovery.ServiceInstance[none]) {
			i.Type = discovery.Permanent
		}),
		ofPayload("java.lang.String", ""), ofPayload("java.lang.String", everything.String()),
		ofPayload[*string]("java.lang.String", nil),
		ofPayload("java.lang.Boolean", true), ofPayload("java.lang.Boolean", false),
		ofPayload("java.lang.Integer", int32(math.MinInt32)), ofPayload("java.lang.Integer", int32(math.MaxInt32)),
		ofPayload("java.lang.Integer", uint16(math.MaxUint16)),
		ofPayload("java.lang.Long", 5), ofPayload("java.lang.Long", int64(most)), ofPayload("java.lang.Long", -most),
		ofPayload("java.lang.Long", uint32(math.MaxUint32)), ofPayload("java.math.BigInteger", uint64(most)),
		ofPayload("java.lang.Short", int16(math.MinInt16)), ofPayload("java.lang.Short", uint8(math.MaxUint8)),
		ofPayload("java.lang.Byte", int8(math.MinInt8)),
		ofPayload("java.lang.Float", float32(0.1)), ofPayload("java.lang.Float", float32(math.NaN())),
		ofPayload("java.lang.Float", float32(math.SmallestNonzeroFloat32)),
		ofPayload("java.lang.Double", 0.0), ofPayload("java.lang.Double", 1e10), ofPayload("java.lang.Double", 0.1),
		ofPayload("java.lang.Double", math.MaxFloat64), ofPayload("java.lang.Double", math.SmallestNonzeroFloat64),
		ofPayload("java.lang.Double", math.Inf(1)), ofPayload("java.lang.Double", math.Copysign(0, -1)),
		ofPayload("[B", []byte{0, 127, 255}), ofPayload("[B", []byte{}), ofPayload[[]byte]("[B", nil),
		ofPayload("java.util.List", []string{}), ofPayload("java.util.List", []string{"a", "b"}),
		ofPayload("java.util.List", []any{1, "a", nil, 1.0, []any{true}, map[string]any{"k": "v"}}),
		ofPayload("java.util.Map", map[string]any{"a": 1, "b": 1.0, "c": []int{1}, "d": map[string]any{}, "e": nil}),
		ofPayload("java.util.Map", map[int]bool{1: true}), ofPayload[map[string]string]("java.util.Map", nil),
		ofPayload[any]("java.lang.Object", int64(5)), ofPayload[any]("java.lang.Object", json.Number("1.5")),
		ofPayload[any]("java.lang.Object", []any{"a"}), ofPayload[any]("java.lang.Object", nil),
		ofPayload("java.util.Map", json.RawMessage(`{"@class":"java.util.LinkedHashMap","z":1,"a":2}`)),
		ofClass("java.util.Date", now), ofClass("java.util.UUID", "00000000-0000-0001-0000-000000000002"),
		ofClass("Instances$Color", "GREEN"), ofClass("java.lang.Integer", 5), ofClass("java.lang.Long", int32(5)),
		ofClass("java.util.HashSet", []string{"a"}), ofClass("[I", []int{1, 2}),
		ofClass("java.util.TreeMap", map[string]int{"b": 2, "a": 1}),
		ofClass("java.math.BigDecimal", json.Number("1.50")), ofClass("java.lang.Character", "c"),
		ofClass("Instances$Meta", instanceMeta{C: "GREEN"}), ofClass[*instanceMeta]("Instances$Meta", nil),
		ofClass("Instances$Meta", instanceMeta{
			Zone: everything.String(), Weight: 5, Inner: &instanceInner{N: 3, L: []string{"a"}}, D: 1, F: 0.5, Big: most,
			M: map[string]any{"i": 1, "d": 1.0}, Raw: []byte{1}, When: &now, C: "RED", OK: true,
		}),
		ofPayload[any]("Instances$Meta", instanceMeta{C: "RED"}, discovery.WithPayloadClass("Instances$Meta")),
	}
	for _, i := range list {
		if i.err != nil {
			t.Errorf("%s: %v", i.name, i.err)
			continue
		}
		var again string
		args := interop.Args{"class": i.class, "data": hexOf(i.data), "enabledMember": true}
		if err := j.Call(j.ctx, "instanceRewrite", args, &again); err != nil {
			t.Errorf("%s: Java does not read %s: %v", i.name, i.data, err)
		} else if again != hexOf(i.data) {
			data, _ := hex.DecodeString(again)
			t.Errorf("%s: Java writes back\n%s, not\n%s", i.name, data, i.data)
		}
	}
}
