package discovery

import (
	"crypto/rand"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// ServiceInstance is one instance of a service, and what is in its node. T is the type of its payload: struct{} if
// there is none. [NewInstanceSerializer] says which types Java reads.
//
// An instance that was read from a node remembers what its fields do not say: members that Java does not know, the
// class of the payload, an address that is empty and not null. A changed copy of it, written back, has all of that
// still. In Java: ServiceInstance, which is built with ServiceInstanceBuilder.
type ServiceInstance[T any] struct {
	Name             string    // of the service
	ID               string    // unique in the service
	Address          string    // a host name or an IP address; none if empty, in Java null
	Port             int       // none if 0, in Java null
	SSLPort          int       // none if 0, in Java null
	Payload          T         // null in Java if it is a nil pointer, map or slice
	RegistrationTime time.Time // in milliseconds; the zero time is 0
	Type             ServiceType
	URISpec          URISpec // null in Java if it has no parts
	Disabled         bool    // not to be picked; in Java: !isEnabled

	read []byte // the node that it was read from, unless its fields say all that is in there
}

// NewServiceInstance returns an instance that is registered now, of type [Dynamic], with a random ID. To find the
// address of this machine, see [LocalAddresses]. In Java: ServiceInstance.builder.
func NewServiceInstance[T any](name, address string, port int) ServiceInstance[T] {
	return ServiceInstance[T]{
		Name: name, ID: newID(), Address: address, Port: port, RegistrationTime: timeOf(time.Now().UnixMilli()),
	}
}

// newID returns a random UUID.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])  // it returns no error
	b[6] = b[6]&0x0f | 4<<4 // version 4: random
	b[8] = b[8]&0x3f | 2<<6 // the variant of RFC 9562
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// timeOf returns the time of a node.
func timeOf(millis int64) time.Time {
	if millis == 0 {
		return time.Time{}
	}
	return time.UnixMilli(millis).UTC()
}

// millisOf returns what a node has for a time.
func millisOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// URI returns the URI of the instance from its URISpec. The variables are "scheme" ("https" if there is an SSL port,
// else "http"), "name", "id", "address", "port", "ssl-port", "registration-time-utc" (in milliseconds) and
// "service-type" ("dynamic"); those of the caller come first, and one that nobody has is empty. Note that "port" is the
// plain port under "https", too. In Java: buildUriSpec.
func (i ServiceInstance[T]) URI(variables map[string]string) string {
	if i.URISpec.IsZero() {
		return ""
	}
	all := map[string]string{
		"name": i.Name, "id": i.ID, "address": i.Address, "port": portText(i.Port), "ssl-port": portText(i.SSLPort),
		"registration-time-utc": strconv.FormatInt(millisOf(i.RegistrationTime), 10),
		"service-type":          strings.ToLower(i.Type.String()),
	}
	if i.SSLPort != 0 {
		all["scheme"] = "https"
	}
	maps.Copy(all, variables)
	return i.URISpec.Build(all)
}

func portText(port int) string {
	if port == 0 {
		return ""
	}
	return strconv.Itoa(port)
}

// Equal reports whether all fields are equal, in the precision of a node. Payloads are compared with reflect.DeepEqual.
// In Java: equals.
func (i ServiceInstance[T]) Equal(other ServiceInstance[T]) bool {
	return i.Name == other.Name && i.ID == other.ID && i.Address == other.Address && i.Port == other.Port &&
		i.SSLPort == other.SSLPort && millisOf(i.RegistrationTime) == millisOf(other.RegistrationTime) &&
		i.Type == other.Type && i.Disabled == other.Disabled && i.URISpec.Equal(other.URISpec) &&
		reflect.DeepEqual(i.Payload, other.Payload)
}
