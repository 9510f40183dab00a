#!/bin/bash
# A standalone ZooKeeper that is started again from a backup of its data gives the transaction ids behind the backup a
# second time. CuratorCache of Java Curator takes a node for unchanged if its modification id is the one it knows. So
# after such a restore it replaces the data of a node in silence: get returns the new data, and no listener is called.
#
# Seen with curator-recipes 5.9.0, zookeeper 3.9.5 and OpenJDK 17:
#
#     NODE_CREATED one
#     NODE_CHANGED two
#     the same transaction id: true
#     the cache has three
#     events behind the restore: 0
#
# It fails if a version behaves otherwise. It needs a JDK and Maven.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat >pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.curator</groupId><artifactId>curator-recipes</artifactId><version>5.9.0</version></dependency>
    <dependency><groupId>org.apache.zookeeper</groupId><artifactId>zookeeper</artifactId><version>3.9.5</version></dependency>
    <dependency><groupId>io.dropwizard.metrics</groupId><artifactId>metrics-core</artifactId><version>4.1.12.1</version></dependency>
    <dependency><groupId>org.xerial.snappy</groupId><artifactId>snappy-java</artifactId><version>1.1.10.5</version></dependency>
  </dependencies>
</project>
XML

cat >Restored.java <<'JAVA'
import java.net.ServerSocket;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
import org.apache.curator.framework.*;
import org.apache.curator.framework.recipes.cache.*;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryForever;

public class Restored {
    static final Path data = Path.of("data"), backup = Path.of("backup");
    static String address;
    static Process server;

    public static void main(String[] args) throws Exception {
        try (ServerSocket free = new ServerSocket(0)) {
            address = "127.0.0.1:" + free.getLocalPort();
        }
        Files.createDirectories(data);
        start();
        write("one");
        CuratorFramework client = connect();
        BlockingQueue<ConnectionState> states = new LinkedBlockingQueue<>();
        client.getConnectionStateListenable().addListener((c, state) -> states.add(state));
        BlockingQueue<String> events = new LinkedBlockingQueue<>();
        CuratorCache cache = CuratorCache.build(client, "/node");
        cache.listenable().addListener((type, before, now) -> events.add(type + " " + new String(now.getData())));
        cache.start();
        System.out.println(events.take());
        stop();
        copy(data, backup);
        start();
        while (states.take() != ConnectionState.RECONNECTED) {}
        long known = write("two");
        System.out.println(events.take());
        stop();
        delete(data);
        copy(backup, data);
        start();
        long again = write("three"); // the server takes the client back now: it has seen no later transaction
        while (states.take() != ConnectionState.RECONNECTED) {}
        System.out.println("the same transaction id: " + (known == again));
        String has;
        do {
            Thread.sleep(100);
            has = new String(cache.get("/node").orElseThrow().getData());
        } while (has.equals("two"));
        System.out.println("the cache has " + has);
        Thread.sleep(3000); // an event comes behind the data, if it comes
        System.out.println("events behind the restore: " + events.size());
        client.close();
        stop();
    }

    static CuratorFramework connect() throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.newClient(address, 30000, 15000, new RetryForever(200));
        client.start();
        client.blockUntilConnected();
        return client;
    }

    /** Writes the node in a session of its own, and returns the id of the transaction. */
    static long write(String text) throws Exception {
        try (CuratorFramework client = connect()) {
            client.create().orSetData().forPath("/node", text.getBytes());
            return client.checkExists().forPath("/node").getMzxid();
        }
    }

    static void start() throws Exception {
        server = new ProcessBuilder("java", "-Dzookeeper.admin.enableServer=false", "-cp", System.getProperty("java.class.path"),
            "org.apache.zookeeper.server.ZooKeeperServerMain", address.split(":")[1], data.toString())
            .redirectErrorStream(true).redirectOutput(new java.io.File("server.log")).start();
    }

    static void stop() throws Exception {
        server.destroy();
        server.waitFor();
    }

    static void copy(Path from, Path to) throws Exception {
        try (var files = Files.walk(from)) {
            for (Path file : (Iterable<Path>) files::iterator) Files.copy(file, to.resolve(from.relativize(file)));
        }
    }

    static void delete(Path root) throws Exception {
        try (var files = Files.walk(root)) {
            for (Path file : (Iterable<Path>) files.sorted(Comparator.reverseOrder())::iterator) Files.delete(file);
        }
    }
}
JAVA

mvn -q -B dependency:build-classpath -Dmdep.outputFile=classpath
javac -cp "$(cat classpath)" Restored.java
timeout 120 java -cp ".:$(cat classpath)" Restored 2>client.log | tee output
diff output - <<'TEXT'
NODE_CREATED one
NODE_CHANGED two
the same transaction id: true
the cache has three
events behind the restore: 0
TEXT
