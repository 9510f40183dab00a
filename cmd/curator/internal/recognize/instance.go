package recognize

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/zkpath"
)

// Instance is what package discovery reads from the node of an instance, with any payload.
type Instance = discovery.ServiceInstance[json.RawMessage]

// serializer reads what package discovery reads: what Java writes, and what Jackson takes for it.
var serializer = newSerializer()

func newSerializer() discovery.InstanceSerializer[json.RawMessage] {
	s, err := discovery.NewInstanceSerializer[json.RawMessage]()
	if err != nil {
		panic(err) // raw JSON needs no class
	}
	return s
}

// Instances returns the nodes that package discovery reads as instances, in the order of their paths. It is for a place
// where services are: data that says neither the id nor the name of its node is an instance there, if it says how to
// reach one.
func Instances(nodes []Node) (found []Participant) {
	for i := range nodes {
		n := &nodes[i]
		if n.Path == "/" {
			continue
		}
		parent, name := zkpath.PathAndNode(n.Path)
		in, ok := read(n.Data)
		if ok && (hasID(&in, name) || in.Name != "" && in.Name == zkpath.Node(parent) || isReachable(&in)) {
			found = append(found, member(parent, &child{Node: n, name: name}, &in))
		}
	}
	slices.SortFunc(found, func(a, b Participant) int {
		return slices.Compare(append(zkpath.Split(a.Path), a.Node), append(zkpath.Split(b.Path), b.Node))
	})
	return found
}

// instances returns the instances of a service: nodes that package discovery reads, with the id that the node has.
func instances(path string, all []*child, take func([]*child) []*child) (found []Participant) {
	for _, c := range all {
		if in, ok := read(c.Data); ok && hasID(&in, c.name) && (in.Name != "" || isReachable(&in)) {
			take([]*child{c})
			found = append(found, member(path, c, &in))
		}
	}
	slices.SortFunc(found, func(a, b Participant) int { return cmp.Compare(a.Node, b.Node) })
	return found
}

// read returns the instance in the data of a node.
func read(data []byte) (in Instance, ok bool) {
	if b := bytes.TrimLeft(data, " \t\r\n"); len(b) == 0 || b[0] != '{' {
		return in, false // most nodes, without an error for each
	}
	in, err := serializer.Decode(data)
	return in, err == nil
}

// hasID reports whether an instance has the id that its node has. The node of a sequential one has a number behind it.
func hasID(in *Instance, node string) bool {
	number, ok := strings.CutPrefix(node, in.ID)
	if !ok || in.ID == "" {
		return false
	}
	_, err := strconv.ParseInt(number, 10, 32)
	return number == "" || err == nil && len(number) >= 10 && in.Type == discovery.DynamicSequential
}

// isReachable reports whether an instance says where it is.
func isReachable(in *Instance) bool {
	return in.Address != "" || in.Port != 0 || in.SSLPort != 0 || !in.URISpec.IsZero()
}

// member describes the node of an instance.
func member(path string, c *child, in *Instance) Participant {
	p := participant(Service, path, Member, c)
	p.ID, p.Address, p.Service = cmp.Or(in.ID, c.name), in.Address, in
	if port := cmp.Or(in.Port, in.SSLPort); port != 0 {
		p.Address = net.JoinHostPort(p.Address, strconv.Itoa(port))
	}
	if in.Disabled {
		p.Note = "disabled"
	}
	return p
}
