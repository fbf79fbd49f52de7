import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** Writes JSON events to a topic: java Produce.java BOOTSTRAP TOPIC. */
public class Produce {
  public static void main(String[] args) {
    Map<String, Object> properties = Map.of("bootstrap.servers", args[0], "acks", "all");
    try (var producer = new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer())) {
      for (int n = 0; n < 100; n++) {
        String event = n % 2 == 0
            ? "{\"x\": [\"win\", \"a\", \"prize\"], \"y\": \"spam\", \"id\": " + n + "}"
            : "{\"x\": [\"see\", \"you\"], \"y\": \"ham\", \"id\": " + n + "}";
        producer.send(new ProducerRecord<>(args[1], "everyone", event));
      }
    }
  }
}
