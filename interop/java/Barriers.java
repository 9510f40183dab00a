import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;

/** Barriers. */
final class Barriers {
    private final Scope scope;

    Barriers(Scope scope) {
        this.scope = scope;
        barrierCommands();
        doubleBarrierCommands();
    }

    private void barrierCommands() {
        Named<DistributedBarrier> barriers = scope.named("barrier");
        scope.on("barrierNew", args -> {
            barriers.put(args, new DistributedBarrier(scope.client(args), args.path()));
            return null;
        });
        scope.on("barrierSet", args -> {
            barriers.get(args).setBarrier();
            return null;
        });
        scope.on("barrierRemove", args -> {
            barriers.get(args).removeBarrier();
            return null;
        });
        scope.on("barrierWait", args ->
                barriers.get(args).waitOnBarrier(args.timeout(), TimeUnit.MILLISECONDS));
    }

    private void doubleBarrierCommands() {
        Named<DistributedDoubleBarrier> barriers = scope.named("double barrier");
        scope.on("doubleBarrierNew", args -> {
            barriers.put(args, new DistributedDoubleBarrier(
                    scope.client(args), args.path(), args.number("members")));
            return null;
        });
        scope.on("doubleBarrierEnter", args ->
                barriers.get(args).enter(args.timeout(), TimeUnit.MILLISECONDS));
        scope.on("doubleBarrierLeave", args ->
                barriers.get(args).leave(args.timeout(), TimeUnit.MILLISECONDS));
    }
}
