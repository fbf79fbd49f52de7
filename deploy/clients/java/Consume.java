import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Prints results: java Consume.java BOOTSTRAP TOPIC. */
public class Consume {
  public static void main(String[] args) {
    Map<String, Object> properties = Map.of("bootstrap.servers", args[0], "group.id", "java-" + args[1],
        "auto.offset.reset", "earliest", "isolation.level", "read_committed");
    try (var consumer = new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer())) {
      consumer.subscribe(List.of(args[1]));
      for (long until = System.nanoTime() + 20_000_000_000L; System.nanoTime() < until; ) {
        for (var record : consumer.poll(Duration.ofMillis(500))) {
          System.out.println(new String(record.headers().lastHeader("type").value()) + " " + record.value());
          until = System.nanoTime() + 5_000_000_000L;
        }
      }
    }
  }
}
