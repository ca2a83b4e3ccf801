// Jedis used in anger: what Java services do with it, against a server that starts empty.
//
//     java -cp 'LIBRARIES/*' JedisInAnger.java PORT
//
// PORT is of 127.0.0.1. With a folder in the variable CERTIFICATES (ca.crt, client.crt, client.key) it is for TLS. It
// passes on a real redis-server too. The first test that fails ends it.
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManagerFactory;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.StreamEntryID;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.args.ListDirection;
import redis.clients.jedis.args.UnblockType;
import redis.clients.jedis.csc.CacheConfig;
import redis.clients.jedis.csc.CacheFactory;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.params.XReadParams;
import redis.clients.jedis.resps.Tuple;

class JedisInAnger {
    static final int PATIENCE_S = 60;
    static final ExecutorService THREADS = Executors.newCachedThreadPool(task -> {
        var thread = new Thread(task);
        thread.setDaemon(true);
        return thread;
    });
    static HostAndPort address;
    static SSLSocketFactory sockets;

    static void same(Object got, Object expected) {
        if (!Objects.equals(got, expected)) throw new AssertionError(got + ", and not " + expected);
    }

    static void refuses(String text, Callable<?> call) throws Exception {
        try {
            call.call();
        } catch (JedisException error) {
            if (!String.valueOf(error.getMessage()).contains(text)) throw new AssertionError("not " + text, error);
            return;
        }
        throw new AssertionError("it was not refused: " + text);
    }

    /** Looks again and again at what another connection brings about. */
    static void until(BooleanSupplier condition) throws Exception {
        for (long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S); !condition.getAsBoolean(); Thread.sleep(2))
            if (System.nanoTime() > end) throw new AssertionError("it does not come");
    }

    static SSLSocketFactory sockets(Path folder) throws Exception {
        var x509 = CertificateFactory.getInstance("X.509");
        Function<String, Certificate> certificate = name -> {
            try (var file = Files.newInputStream(folder.resolve(name))) {
                return x509.generateCertificate(file);
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
        };
        var store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        store.setCertificateEntry("ca", certificate.apply("ca.crt"));
        var text = Files.readString(folder.resolve("client.key")).replaceAll("-----[A-Z ]+-----|\\s", "");
        var key = KeyFactory.getInstance("EC").generatePrivate(new PKCS8EncodedKeySpec(Base64.getDecoder().decode(text)));
        store.setKeyEntry("client", key, new char[0], new Certificate[] {certificate.apply("client.crt")});
        var keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        keys.init(store, new char[0]);
        var trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        var context = SSLContext.getInstance("TLS");
        context.init(keys.getKeyManagers(), trust.getTrustManagers(), null);
        return context.getSocketFactory();
    }

    static DefaultJedisClientConfig.Builder config() {
        var config = DefaultJedisClientConfig.builder().socketTimeoutMillis(PATIENCE_S * 1000).blockingSocketTimeoutMillis(0);
        return sockets == null ? config : config.ssl(true).sslSocketFactory(sockets);
    }

    static Jedis connect() {
        return new Jedis(address, config().build());
    }

    static Jedis connect(RedisProtocol protocol) {
        return new Jedis(address, config().protocol(protocol).build());
    }

    static Jedis login(String user, String password) {
        return new Jedis(address, config().user(user).password(password).build());
    }

    record Waiting<T>(long id, Future<T> reply) {
        T get() throws Exception {
            return reply.get(PATIENCE_S, TimeUnit.SECONDS);
        }
    }

    /** Starts a call on a connection of its own, and returns when the server lists it as waiting. */
    static <T> Waiting<T> wait(Jedis r, RedisProtocol protocol, Function<Jedis, T> call) throws Exception {
        var client = protocol == null ? connect() : connect(protocol);
        long id = client.clientId();
        Future<T> reply = THREADS.submit(() -> {
            try (client) {
                return call.apply(client);
            }
        });
        until(() -> r.clientList(id).matches("(?s).* flags=\\w*b.*"));
        return new Waiting<>(id, reply);
    }

    static void values(Jedis r) throws Exception {
        same(r.set("k", "v"), "OK");
        same(r.get("none"), null);
        same(r.rpush("l", "a", "b", "c"), 3L);
        same(r.lrange("l", 0, -1), List.of("a", "b", "c"));
        same(r.hset("h", Map.of("f", "1", "g", "2")), 2L);
        same(r.hgetAll("h"), Map.of("f", "1", "g", "2"));
        same(r.zadd("z", Map.of("a", 1.5, "b", 2.0)), 2L);
        same(r.zrangeWithScores("z", 0, -1), List.of(new Tuple("a", 1.5), new Tuple("b", 2.0)));
        same(r.xadd("x", new StreamEntryID("1-1"), Map.of("f", "v")), new StreamEntryID("1-1"));
        same(r.xlen("x"), 1L);
        refuses("WRONGTYPE Operation against a key", () -> r.incr("l"));
        var pipeline = r.pipelined();
        var numbers = IntStream.range(0, 10_000).mapToObj(n -> pipeline.incr("n")).collect(Collectors.toList());
        pipeline.sync();
        for (int n = 0; n < 10_000; n++) same(numbers.get(n).get(), n + 1L);
    }

    static void transactions(Jedis r) throws Exception {
        var transaction = r.multi();
        transaction.set("t", "x");
        transaction.incr("t");
        transaction.get("t");
        var replies = transaction.exec();
        same(replies.get(0), "OK");
        same(replies.get(1).toString().contains("ERR value is not an integer"), true);
        same(replies.get(2), "x");
        try (var other = connect()) {
            r.watch("t");
            same(other.set("t", "theirs"), "OK");
            var late = r.multi();
            late.set("t", "mine");
            same(late.exec(), null);
        }
        same(r.get("t"), "theirs");
        // Those who are late try again.
        Callable<Integer> count = () -> {
            try (var client = connect()) {
                int tries = 0;
                for (int done = 0; done < 100; tries++) {
                    client.watch("n");
                    var value = client.get("n");
                    var next = client.multi();
                    next.set("n", String.valueOf(value == null ? 1 : Integer.parseInt(value) + 1));
                    if (next.exec() != null) done++;
                }
                return tries;
            }
        };
        for (var counted : THREADS.invokeAll(List.of(count, count, count, count))) same(counted.get() >= 100, true);
        same(r.get("n"), "400");
    }

    static void waiting(Jedis r) throws Exception {
        for (var protocol : new RedisProtocol[] {null, RedisProtocol.RESP3}) {
            var first = wait(r, protocol, c -> c.blpop(0, "none", "l"));
            var second = wait(r, protocol, c -> c.brpop(0, "l"));
            same(r.rpush("l", "a", "b"), 2L);
            same(first.get(), List.of("l", "a"));
            same(second.get(), List.of("l", "b"));
            var move = wait(r, protocol, c -> c.blmove("from", "over", ListDirection.LEFT, ListDirection.RIGHT, 0));
            var push = wait(r, protocol, c -> c.brpoplpush("over", "to", 0));
            r.rpush("from", "x");
            same(List.of(move.get(), push.get()), List.of("x", "x"));
            var many = wait(r, protocol, c -> c.blmpop(0, ListDirection.RIGHT, 2, "none", "l"));
            r.rpush("l", "1", "2", "3");
            same(many.get().getKey(), "l");
            same(many.get().getValue(), List.of("3", "2"));
            var least = wait(r, protocol, c -> c.bzpopmin(0, "z"));
            r.zadd("z", Map.of("a", 2.5));
            same(least.get().getValue(), new Tuple("a", 2.5));
            var read = wait(r, protocol, c -> c.xread(XReadParams.xReadParams().block(0), Map.of("x", StreamEntryID.LAST_ENTRY)));
            r.xadd("x", new StreamEntryID("1-1"), Map.of("f", "v"));
            same(read.get().get(0).getValue().get(0).getFields(), Map.of("f", "v"));
            r.flushAll();
        }
        long started = System.nanoTime();
        same(r.blpop(0.05, "none"), null);
        same(System.nanoTime() - started >= 50_000_000, true);
        var unblocked = wait(r, null, c -> {
            try {
                return c.blpop(0, "none").toString();
            } catch (JedisException error) {
                return error.getMessage();
            }
        });
        same(r.clientUnblock(unblocked.id(), UnblockType.ERROR), 1L);
        same(unblocked.get().startsWith("UNBLOCKED client unblocked via CLIENT UNBLOCK"), true);
    }

    static class Listener extends JedisPubSub {
        final BlockingQueue<List<String>> heard = new LinkedBlockingQueue<>();

        @Override
        public void onMessage(String channel, String message) {
            heard.add(List.of(channel, message));
        }

        @Override
        public void onPMessage(String pattern, String channel, String message) {
            heard.add(List.of(pattern, channel, message));
        }

        void hears(String... message) throws Exception {
            same(heard.poll(PATIENCE_S, TimeUnit.SECONDS), List.of(message));
        }
    }

    /** A listener in a thread of its own, subscribed. */
    static Listener listen(RedisProtocol protocol, boolean isPattern, String... names) throws Exception {
        var listener = new Listener();
        THREADS.submit(() -> {
            try (var client = connect(protocol)) {
                if (isPattern) client.psubscribe(listener, names);
                else client.subscribe(listener, names);
            }
        });
        until(() -> listener.isSubscribed() && listener.getSubscribedChannels() == names.length);
        return listener;
    }

    static void messages(Jedis r) throws Exception {
        for (var protocol : RedisProtocol.values()) {
            var channels = listen(protocol, false, "news", "many");
            var patterns = listen(protocol, true, "n?ws*", "__key*@0__:*");
            same(r.publish("news", "one"), 2L);
            same(r.publish("newsletter", "two"), 1L);
            channels.hears("news", "one");
            patterns.hears("n?ws*", "news", "one");
            patterns.hears("n?ws*", "newsletter", "two");
            same(r.pubsubNumSub("news", "none"), Map.of("news", 1L, "none", 0L));
            same(r.pubsubNumPat(), 2L);
            var pipeline = r.pipelined();
            for (int n = 0; n < 3_000; n++) pipeline.publish("many", String.valueOf(n));
            pipeline.sync();
            for (int n = 0; n < 3_000; n++) channels.hears("many", String.valueOf(n));
            r.configSet("notify-keyspace-events", "KEA");
            r.set("k", "1");
            r.del("k");
            for (var event : List.of("set", "del")) {
                patterns.hears("__key*@0__:*", "__keyspace@0__:k", event);
                patterns.hears("__key*@0__:*", "__keyevent@0__:" + event, "k");
            }
            r.configSet("notify-keyspace-events", "");
            channels.unsubscribe();
            patterns.punsubscribe();
            until(() -> r.publish("news", "nobody") == 0);
        }
    }

    static void copies(Jedis r) throws Exception {
        var config = config().resp3().build();
        var cache = CacheFactory.getCache(CacheConfig.builder().maxSize(1000).build());
        try (var keeper = new UnifiedJedis(address, config, cache)) {
            r.set("k", "one");
            same(keeper.get("k"), "one");
            same(cache.getSize(), 1);
            long hits = cache.getStats().getHitCount();
            for (int n = 0; n < 50; n++) same(keeper.get("k"), "one");
            same(cache.getStats().getHitCount(), hits + 50);
            for (int n = 0; n < 100; n++) {
                var value = String.valueOf(n);
                r.set("k", value);
                until(() -> keeper.get("k").equals(value));
            }
            r.hset("h", "f", "1");
            same(keeper.hget("h", "f"), "1");
            r.flushAll();
            until(() -> keeper.hget("h", "f") == null);
        }
    }

    static void users(Jedis r) throws Exception {
        try {
            same(r.aclSetUser("ann", "on", ">secret", "~app:*", "&news*", "+@read", "+@connection", "+set", "+publish"), "OK");
            refuses("WRONGPASS invalid username-password pair", () -> login("ann", "guess"));
            try (var ann = login("ann", "secret")) {
                same(ann.set("app:1", "x"), "OK");
                refuses("NOPERM No permissions to access a key", () -> ann.get("other"));
                refuses("NOPERM User ann has no permissions to run the 'del' command", () -> ann.del("app:1"));
                refuses("NOPERM No permissions to access a channel", () -> ann.publish("secret", "x"));
                same(r.aclDryRun("ann", "get", "app:1"), "OK");
                same(r.aclGetUser("ann").getKeys(), "~app:*");
                same(r.aclLog().size() >= 4, true);
                r.aclSetUser("ann", "-@read");
                refuses("has no permissions to run the 'get' command", () -> ann.get("app:1"));
                same(r.aclDelUser("ann"), 1L);
                refuses("", () -> ann.ping());
            }
            r.configSet("requirepass", "s3cret");
            try (var friend = new Jedis(address, config().resp3().password("s3cret").build()); var stranger = connect()) {
                same(friend.ping(), "PONG");
                refuses("NOAUTH Authentication required", () -> stranger.get("k"));
            }
        } finally {
            r.configSet("requirepass", "");
            r.aclDelUser("ann");
        }
    }

    interface Test {
        void run(Jedis r) throws Exception;
    }

    public static void main(String[] args) throws Exception {
        address = new HostAndPort("127.0.0.1", Integer.parseInt(args[0]));
        var folder = System.getenv("CERTIFICATES");
        if (folder != null) sockets = sockets(Path.of(folder));
        var tests = new ArrayList<Map.Entry<String, Test>>();
        tests.add(Map.entry("values", JedisInAnger::values));
        tests.add(Map.entry("transactions", JedisInAnger::transactions));
        tests.add(Map.entry("clients that wait", JedisInAnger::waiting));
        tests.add(Map.entry("messages and events of keys", JedisInAnger::messages));
        tests.add(Map.entry("copies that are kept", JedisInAnger::copies));
        tests.add(Map.entry("users", JedisInAnger::users));
        for (var test : tests) {
            try (var r = connect()) {
                r.flushAll();
                test.getValue().run(r);
            }
            System.out.println("ok " + test.getKey());
        }
        System.exit(0);
    }
}
