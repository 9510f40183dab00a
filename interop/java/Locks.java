import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.RevocationListener;
import org.apache.curator.framework.recipes.locks.Revoker;

/** Locks and semaphores. */
final class Locks {
    private final Scope scope;

    /** counts are the limits of semaphores that read them. */
    Locks(Scope scope, Named<Counts.Count> counts) {
        this.scope = scope;
        mutexCommands();
        readWriteLockCommands();
        multiLockCommands();
        semaphoreMutexCommands();
        semaphoreCommands(counts);
        scope.on("revoke", args -> {
            Revoker.attemptRevoke(scope.client(args), args.path());
            return null;
        });
    }

    private void mutexCommands() {
        Named<ThreadLock> mutexes = scope.named("mutex");
        scope.on("mutexNew", args -> {
            mutexes.put(args, new Mutex(scope.client(args), args.path(), args.bytes("lockData")));
            return null;
        });
        threadLockCommands("mutex", "mutex", mutexes);
    }

    /** A read-write lock is two locks of one name. They share a thread, which may write and then read. */
    private void readWriteLockCommands() {
        Named<ThreadLock> readLocks = scope.named("read lock");
        Named<ThreadLock> writeLocks = scope.named("write lock");
        scope.on("readWriteLockNew", args -> {
            WriteLock writeLock = new WriteLock(scope.client(args), args.path(), args.bytes("lockData"));
            writeLocks.put(args, writeLock);
            readLocks.put(args, new ReadLock(scope.client(args), args.path(), args.bytes("lockData"), writeLock));
            return null;
        });
        threadLockCommands("readLock", "readWriteLock", readLocks);
        threadLockCommands("writeLock", "readWriteLock", writeLocks);
    }

    private void multiLockCommands() {
        Named<InterProcessLock> multiLocks = scope.named("multi lock");
        scope.on("multiLockNew", args -> {
            multiLocks.put(args, new InterProcessMultiLock(scope.client(args), args.texts("paths")));
            return null;
        });
        lockCommands("multiLock", "multiLock", multiLocks);
    }

    private void semaphoreMutexCommands() {
        Named<InterProcessLock> mutexes = scope.named("semaphore mutex");
        scope.on("semaphoreMutexNew", args -> {
            mutexes.put(args, new InterProcessSemaphoreMutex(scope.client(args), args.path()));
            return null;
        });
        lockCommands("semaphoreMutex", null, mutexes);
    }

    /** Registers the commands of every lock. */
    private void lockCommands(String prefix, String threadOf, Named<? extends InterProcessLock> locks) {
        scope.on(prefix + "Acquire", threadOf, args ->
                locks.get(args).acquire(args.timeout(), TimeUnit.MILLISECONDS));
        scope.on(prefix + "Release", threadOf, args -> {
            locks.get(args).release();
            return null;
        });
        scope.on(prefix + "Held", args -> locks.get(args).isAcquiredInThisProcess());
    }

    /** Registers the further commands of a lock that belongs to a thread. */
    private void threadLockCommands(String prefix, String threadOf, Named<ThreadLock> locks) {
        lockCommands(prefix, threadOf, locks);
        scope.on(prefix + "Owned", threadOf, args -> locks.get(args).isOwnedByCurrentThread());
        scope.on(prefix + "Path", threadOf, args -> locks.get(args).getLockPath());
        scope.on(prefix + "Participants", args -> locks.get(args).getParticipantNodes());
        scope.on(prefix + "MakeRevocable", args -> {
            String name = args.name();
            locks.get(args).makeRevocable(lock -> scope.event("revoked", "name", name));
            return null;
        });
    }

    private void semaphoreCommands(Named<Counts.Count> counts) {
        Named<Semaphore> semaphores = scope.named("semaphore");
        scope.on("semaphoreNew", args -> {
            String count = args.text("count", null);
            InterProcessSemaphoreV2 semaphore = count == null
                    ? new InterProcessSemaphoreV2(scope.client(args), args.path(), args.number("leases"))
                    : new InterProcessSemaphoreV2(scope.client(args), args.path(), counts.get(count).recipe());
            semaphore.setNodeData(args.bytes("data"));
            semaphores.put(args, new Semaphore(semaphore, new ConcurrentHashMap<>()));
            return null;
        });
        scope.on("semaphoreAcquire", args -> {
            Semaphore semaphore = semaphores.get(args);
            Collection<Lease> leases = semaphore.recipe.acquire(
                    args.number("leases", 1), args.timeout(), TimeUnit.MILLISECONDS);
            if (leases == null) {
                return null;
            }
            List<String> nodes = new ArrayList<>();
            for (Lease lease : leases) {
                nodes.add(lease.getNodeName());
                semaphore.leases.put(lease.getNodeName(), lease);
            }
            return nodes;
        });
        scope.on("semaphoreRelease", args -> {
            Semaphore semaphore = semaphores.get(args);
            List<String> nodes = args.texts("leases");
            for (String node : nodes.isEmpty() ? List.copyOf(semaphore.leases.keySet()) : nodes) {
                Lease lease = semaphore.leases.remove(node);
                if (lease == null) {
                    throw new IllegalArgumentException("no lease \"" + node + "\"");
                }
                semaphore.recipe.returnLease(lease);
            }
            return null;
        });
        scope.on("semaphoreParticipants", args -> semaphores.get(args).recipe.getParticipantNodes());
    }

    /** A semaphore and its leases in use, by the names of their nodes. */
    private record Semaphore(InterProcessSemaphoreV2 recipe, Map<String, Lease> leases) {}

    /** A lock that belongs to a thread, with the path of its node. */
    private interface ThreadLock extends InterProcessLock {
        boolean isOwnedByCurrentThread();

        String getLockPath();

        Collection<String> getParticipantNodes() throws Exception;

        void makeRevocable(RevocationListener<InterProcessMutex> listener);
    }

    /** A mutex with data of the test's choice in its nodes. */
    private static final class Mutex extends InterProcessMutex implements ThreadLock {
        private final byte[] lockData;

        Mutex(CuratorFramework client, String path, byte[] lockData) {
            super(client, path);
            this.lockData = lockData;
        }

        @Override
        protected byte[] getLockNodeBytes() {
            return lockData;
        }

        @Override
        public String getLockPath() {
            return super.getLockPath();
        }
    }

    private static final class ReadLock extends InterProcessReadWriteLock.ReadLock implements ThreadLock {
        ReadLock(CuratorFramework client, String path, byte[] lockData, WriteLock writeLock) {
            super(client, path, lockData, writeLock);
        }

        @Override
        public String getLockPath() {
            return super.getLockPath();
        }
    }

    private static final class WriteLock extends InterProcessReadWriteLock.WriteLock implements ThreadLock {
        WriteLock(CuratorFramework client, String path, byte[] lockData) {
            super(client, path, lockData);
        }

        @Override
        public String getLockPath() {
            return super.getLockPath();
        }
    }
}
