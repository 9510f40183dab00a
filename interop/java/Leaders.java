import java.io.Closeable;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;

/** Leader latches and leader selectors. */
final class Leaders {
    private final Scope scope;

    Leaders(Scope scope) {
        this.scope = scope;
        latchCommands();
        selectorCommands();
    }

    private void latchCommands() {
        Named<LeaderLatch> latches = scope.named("latch");
        scope.on("latchStart", args -> {
            String name = args.name();
            LeaderLatch latch = new LeaderLatch(scope.client(args), args.path(), args.text("participant", ""));
            latch.addListener(new LeaderLatchListener() {
                @Override
                public void isLeader() {
                    scope.event("isLeader", "name", name);
                }

                @Override
                public void notLeader() {
                    scope.event("notLeader", "name", name);
                }
            });
            latches.put(args, latch);
            latch.start();
            return null;
        });
        scope.on("latchAwait", args -> latches.get(args).await(args.timeout(), TimeUnit.MILLISECONDS));
        scope.on("latchHasLeadership", args -> latches.get(args).hasLeadership());
        scope.on("latchPath", args -> latches.get(args).getOurPath());
        scope.on("latchLeader", args -> latches.get(args).getLeader().getId());
        scope.on("latchParticipants", args -> fields(latches.get(args).getParticipants()));
        scope.on("latchClose", args -> {
            latches.remove(args).close(LeaderLatch.CloseMode.valueOf(args.text("mode", "SILENT")));
            return null;
        });
    }

    private void selectorCommands() {
        Named<Selector> selectors = scope.named("selector");
        scope.on("selectorStart", args -> {
            Listener listener = new Listener(args.name());
            LeaderSelector recipe = new LeaderSelector(scope.client(args), args.path(), listener);
            recipe.setId(args.text("participant", ""));
            if (args.flag("autoRequeue")) {
                recipe.autoRequeue();
            }
            selectors.put(args, new Selector(recipe, listener));
            recipe.start();
            return null;
        });
        scope.on("selectorRelinquish", args -> {
            selectors.get(args).listener.relinquished.release();
            return null;
        });
        scope.on("selectorInterrupt", args -> {
            selectors.get(args).recipe.interruptLeadership();
            return null;
        });
        scope.on("selectorRequeue", args -> selectors.get(args).recipe.requeue());
        scope.on("selectorHasLeadership", args -> selectors.get(args).recipe.hasLeadership());
        scope.on("selectorLeader", args -> selectors.get(args).recipe.getLeader().getId());
        scope.on("selectorParticipants", args -> fields(selectors.get(args).recipe.getParticipants()));
        scope.on("selectorClose", args -> {
            selectors.remove(args).close();
            return null;
        });
    }

    private static List<Map<String, Object>> fields(Collection<Participant> participants) {
        return participants.stream()
                .map(one -> Map.<String, Object>of("id", one.getId(), "leader", one.isLeader()))
                .toList();
    }

    private record Selector(LeaderSelector recipe, Listener listener) implements Closeable {
        @Override
        public void close() {
            recipe.close();
        }
    }

    /** Leads until the test ends it, or until an interrupt: the adapter interrupts it when the connection is suspended. */
    private final class Listener extends LeaderSelectorListenerAdapter {
        private final String name;
        private final Semaphore relinquished = new Semaphore(0);

        Listener(String name) {
            this.name = name;
        }

        @Override
        public void takeLeadership(CuratorFramework client) throws InterruptedException {
            relinquished.drainPermits(); // an end that was reported too late to an earlier leader
            scope.event("taken", "name", name);
            try {
                relinquished.acquire();
            } finally {
                scope.event("released", "name", name);
            }
        }
    }
}
