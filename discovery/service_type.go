package discovery

import "fmt"

// ServiceType says how long the node of an instance lives. In Java: ServiceType.
type ServiceType int

const (
	// Dynamic is the type of an instance whose node is ephemeral. It is the default.
	Dynamic ServiceType = iota
	// Static is the type of an instance whose node stays until somebody unregisters it.
	Static
	// Permanent is like Static. Java's discovery server expires instances that are Static, and none that are Permanent.
	Permanent
	// DynamicSequential is the type of an instance whose node is ephemeral and has a sequence number in its name.
	DynamicSequential
)

// serviceTypes are Java's names, which are those in the nodes, in the order of the constants.
var serviceTypes = [...]string{"DYNAMIC", "STATIC", "PERMANENT", "DYNAMIC_SEQUENTIAL"}

// String returns Java's name: "DYNAMIC".
func (t ServiceType) String() string {
	if t < 0 || int(t) >= len(serviceTypes) {
		return fmt.Sprintf("ServiceType(%d)", int(t))
	}
	return serviceTypes[t]
}

// IsDynamic reports whether the node of an instance ends with the session that registered it.
func (t ServiceType) IsDynamic() bool { return t == Dynamic || t == DynamicSequential }
