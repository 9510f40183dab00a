package locks

// MutexOption configures an [InterProcessMutex] or an [InterProcessReadWriteLock].
type MutexOption interface{ applyMutex(*InterProcessMutex) }

type mutexOption func(*InterProcessMutex)

func (o mutexOption) applyMutex(m *InterProcessMutex) { o(m) }

// SemaphoreOption configures an [InterProcessSemaphoreV2] or an [InterProcessSemaphoreMutex].
type SemaphoreOption interface {
	applySemaphore(*InterProcessSemaphoreV2)
}

type semaphoreOption func(*InterProcessSemaphoreV2)

func (o semaphoreOption) applySemaphore(s *InterProcessSemaphoreV2) { o(s) }

// Option configures any lock of this package.
type Option interface {
	MutexOption
	SemaphoreOption
}

type nameOption string

func (o nameOption) applyMutex(m *InterProcessMutex)           { m.name = string(o) }
func (o nameOption) applySemaphore(s *InterProcessSemaphoreV2) { s.name = string(o) }

// WithName sets the name of the lock in spans and metrics. The default is no name. Each name is a metric series of its
// own, so use few names: "orders", not the number of an order.
func WithName(name string) Option { return nameOption(name) }

// WithLockNodeData sets the data of the nodes of this process. The default is the default data of the client. In Java:
// getLockNodeBytes.
func WithLockNodeData(data []byte) MutexOption {
	data = append([]byte{}, data...)
	return mutexOption(func(m *InterProcessMutex) { m.queue.Data = data })
}

// WithLeaseData sets the data of the leases of this process. The default is the default data of the client. In Java:
// setNodeData.
func WithLeaseData(data []byte) SemaphoreOption {
	data = append([]byte{}, data...)
	return semaphoreOption(func(s *InterProcessSemaphoreV2) { s.leaseQueue.Data = data })
}

// WithLeaseCount makes the number of leases follow a count that all processes share. It replaces the number given to
// the constructor. A change wakes all waiters. Leases held when the number falls stay valid.
func WithLeaseCount(c LeaseCount) SemaphoreOption {
	return semaphoreOption(func(s *InterProcessSemaphoreV2) { s.limit = c })
}

// WithDriver sets the driver of a mutex. Acquire returns an error if the lock name of the driver is invalid, and if the
// lock is a read-write lock, which has its own drivers. In Java: the constructor with a LockInternalsDriver.
func WithDriver(d Driver) MutexOption {
	return mutexOption(func(m *InterProcessMutex) { m.driver = d })
}
