import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;

/** One contender for a lock of any kind. */
interface Lock {
    void acquire() throws Exception;

    void release() throws Exception;

    static Lock of(String kind, CuratorFramework client, String path, int leases) {
        switch (kind) {
            case "mutex":
                return of(new InterProcessMutex(client, path));
            case "read":
                return of(new InterProcessReadWriteLock(client, path).readLock());
            case "write":
                return of(new InterProcessReadWriteLock(client, path).writeLock());
            case "semaphore":
                return of(new InterProcessSemaphoreV2(client, path, leases));
            default:
                throw new IllegalArgumentException("the locks are mutex, read, write, semaphore");
        }
    }

    private static Lock of(InterProcessLock lock) {
        return new Lock() {
            @Override
            public void acquire() throws Exception {
                lock.acquire();
            }

            @Override
            public void release() throws Exception {
                lock.release();
            }
        };
    }

    private static Lock of(InterProcessSemaphoreV2 semaphore) {
        return new Lock() {
            private Lease lease;

            @Override
            public void acquire() throws Exception {
                lease = semaphore.acquire();
            }

            @Override
            public void release() {
                semaphore.returnLease(lease);
            }
        };
    }
}
